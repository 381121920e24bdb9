"""Tables as text: one line for each row, with bars between the cells."""

from collections.abc import Iterable, Iterator, Sequence

# The length of a block of a table in characters, about that of a chunk of the search index, so that
# each chunk has the header row.
BLOCK_CHARS = 1_500
# The maximum length of a header row that is repeated.
MAX_HEADER_CHARS = 500
# The number of first rows that are searched for the header row. A title and notes may be above it.
HEADER_WITHIN_ROWS = 5


def table_blocks(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the table in blocks of lines. Each block begins with the header row if there is one.

    Empty rows, and empty cells at the end of a row, are left out.
    """
    header = ""
    block: list[str] = []
    size = seen = 0
    for row in rows:
        line = row_text(row)
        if not line:
            continue
        seen += 1
        if not header and seen <= HEADER_WITHIN_ROWS and _is_header(row):
            header = line if len(line) <= MAX_HEADER_CHARS else ""
        elif block and size + len(line) > BLOCK_CHARS:
            yield "\n".join(block)
            block = [header] if header else []
            size = len(header)
        block.append(line)
        size += len(line)
    if block:
        yield "\n".join(block)


def row_text(row: Sequence[str]) -> str:
    """Return the row as a line; empty if all its cells are empty."""
    cells = [" ".join(cell.split()).replace(" | ", " / ") for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return " | ".join(cells)


def _is_header(row: Sequence[str]) -> bool:
    """Return whether the row contains only names: at least two, no numbers and no duplicates."""
    cells = [cell.strip() for cell in row if cell.strip()]
    return (
        len(cells) > 1
        and len(set(cells)) == len(cells)
        and not any(cell[0] in "+-0123456789" for cell in cells)
    )
