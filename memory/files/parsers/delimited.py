"""Parses tables in text files: CSV and TSV."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from memory.files.parsers.documents import Parsed, ParsingBounds, Section
from memory.files.parsers.plain_text import decode
from memory.files.parsers.tables import table_blocks

DELIMITERS = ",;\t|"
MAX_FIELD_CHARS = 1_000_000
SAMPLE_CHARS = 20_000


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return the rows in sections. Each section begins with the header row."""
    text = decode(file.read())
    delimiter = _delimiter(text)
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        sections = list(_as_sections(rows))
    except csv.Error:
        # An unclosed quotation mark would put the rest of the file into one field.
        sections = list(_as_sections(line.split(delimiter) for line in text.split("\n")))
    return Parsed(sections)


def _as_sections(rows: Iterable[list[str]]) -> Iterator[Section]:
    return (Section("", None, (), block) for block in table_blocks(rows))


def _delimiter(text: str) -> str:
    """Return the delimiter that occurs most evenly in the first lines."""
    lines = [line for line in text[:SAMPLE_CHARS].split("\n")[:50] if line.strip()]
    counts = {it: [line.count(it) for line in lines] for it in DELIMITERS}
    return max(DELIMITERS, key=lambda it: (min(counts[it], default=0), sum(counts[it])))
