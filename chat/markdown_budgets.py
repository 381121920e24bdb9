"""Markdown of users and models: limits for tables and nested quotations, and a short-lived cache of
HTML.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import blockquote as parse_blockquote
from markdown_it.rules_block import table as parse_table

# The maximum number of table cells in a text. Missing cells of a row are added, so that 1 KB of
# text can make 65,000 cells, which take a second. Further tables of the text are not rendered as
# tables.
MAX_TABLE_CELLS = 5_000
# The maximum number of lines in nested quotations of a text, counted once per level: 20,000 lines
# without `>` can belong to 20 levels at once, which takes three seconds. Further nested quotations
# stay plain text.
MAX_QUOTED_LINES = 50_000
CACHE_TIMEOUT_S = 300
CACHE_CHARS = 8_000_000


def limit_blocks(parser: MarkdownIt) -> None:
    """Make `parser` recognise tables until a text has MAX_TABLE_CELLS cells, and quotations in
    quotations or lists until it has MAX_QUOTED_LINES lines of them.
    """

    def table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if state.env.get("cells", 0) > MAX_TABLE_CELLS or not parse_table(state, start, end, True):
            return False
        if silent:
            return True
        last = next((line for line in range(start, end) if state.isEmpty(line)), end)
        columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
        state.env["cells"] = state.env.get("cells", 0) + columns * (last - start)
        return state.env["cells"] <= MAX_TABLE_CELLS and parse_table(state, start, end, False)

    def blockquote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if not state.level or not parse_blockquote(state, start, end, True):
            return parse_blockquote(state, start, end, silent)
        quoted = state.env.get("quoted_lines", 0) + end - start
        if silent or quoted > MAX_QUOTED_LINES:
            return quoted <= MAX_QUOTED_LINES
        state.env["quoted_lines"] = quoted
        parse_blockquote(state, start, end, False)
        # In a list, `end` is the end of the text. Only the lines of the quotation count.
        state.env["quoted_lines"] -= end - state.line
        return True

    parser.block.ruler.at("table", table, {"alt": ["paragraph", "reference"]})
    ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.at("blockquote", blockquote, ends)


class CachedHtml(NamedTuple):
    html: str
    expires_at: float


class HtmlCache:
    """A cache of the HTML of recent texts, in this process only.

    The key is a hash of the text. Therefore an edited message is rendered again, and only callers
    that have the text can get its HTML. After CACHE_TIMEOUT_S, entries are dropped at the next use
    of the cache, so that forgotten text also leaves the RAM. A cache in the database or in Redis
    would have to be emptied when text is forgotten.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, CachedHtml] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def get(self, text: str, render: Callable[[str], str]) -> str:
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        now = time.monotonic()
        with self._lock:
            self._drop(now)
            if found := self._entries.get(key):
                return found.html
        html = render(text)
        with self._lock:
            if key not in self._entries:
                self._entries[key] = CachedHtml(html, now + CACHE_TIMEOUT_S)
                self._chars += len(html)
            self._drop(now)
        return html

    def _drop(self, now: float) -> None:
        """Drop entries that are too old, then the oldest until the size is within the limit."""
        while self._entries:
            oldest = next(iter(self._entries.values()))
            if oldest.expires_at > now and self._chars <= CACHE_CHARS:
                break
            self._entries.popitem(last=False)
            self._chars -= len(oldest.html)


html_cache = HtmlCache()
