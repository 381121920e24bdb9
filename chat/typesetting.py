"""Markdown while it is still being written: which of its blocks stay as they are."""

from markdown_it import MarkdownIt

# Blocks alone: what stands inside of them is rendered when they are whole.
_blocks = MarkdownIt("commonmark", {"html": False}).enable("table")
_blocks.core.ruler.enableOnly(["normalize", "block"])
# An open block is looked at again when it has grown by this share, so that a long one costs little.
_GROWTH = 1.05


class Growing:
    """A text that grows at its end. `open` is what may still change: its last block."""

    def __init__(self) -> None:
        self.open = ""
        self._look_at = 0

    def add(self, text: str) -> str:
        """Takes in what came, and returns the blocks that are whole by now; mostly none."""
        self.open += text
        if "\n" not in text or len(self.open) < self._look_at:
            return ""
        end = _last_block(self.open)
        settled, self.open = self.open[:end], self.open[end:]
        self._look_at = int(len(self.open) * _GROWTH)
        return settled


def _last_block(text: str) -> int:
    """Where the last block of `text` begins, in characters."""
    begins = [token.map[0] for token in _blocks.parse(text) if token.level == 0 and token.map]
    if not begins or begins[-1] == 0:
        return 0
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: begins[-1]]))
