"""Splits unfinished Markdown: the complete blocks, and the last, open block. Pure."""

from io import StringIO

from markdown_it import MarkdownIt

from chat.markdown_budgets import limit_blocks
from chat.markdown_syntax import OPEN, add_blocks

# Recognises blocks only. Inline content is rendered once its block is complete.
_parser = MarkdownIt("commonmark", {"html": False}).enable("table")
_parser.core.ruler.enableOnly(["normalize", "block"])
limit_blocks(_parser)
add_blocks(_parser, is_streaming=True)
# The open block is parsed again only when it has grown by this factor, to limit the cost.
_GROWTH = 1.3
# A longer block is not parsed before the reply is complete, because parsing blocks the event loop.
MAX_BLOCK_CHARS = 20_000


class BlockSplitter:
    """A text that grows at its end. `rest` is the last block, which may still change."""

    def __init__(self) -> None:
        self.rest = ""
        self._parse_at = 0

    def add(self, text: str) -> str:
        """Append `text`. Return the blocks that are complete now, usually an empty text."""
        self.rest += text
        if "\n" not in text or not self._parse_at <= len(self.rest) <= MAX_BLOCK_CHARS:
            return ""
        tokens = [token for token in _parser.parse(self.rest) if token.level == 0 and token.map]
        # `splitlines` would also cut at characters that do not end a line in Markdown.
        lines = list(StringIO(self.rest, newline=""))
        starts = [0, *(token.map[0] for token in tokens if token.map)]
        # Maths without a closing delimiter belongs to the preceding paragraph.
        if tokens and tokens[-1].info == OPEN and lines[starts[-1] - 1].strip():
            starts.pop()
        end = sum(map(len, lines[: starts[-1]]))
        complete, self.rest = self.rest[:end], self.rest[end:]
        self._parse_at = int(len(self.rest) * _GROWTH)
        return complete
