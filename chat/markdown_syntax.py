r"""Markdown extensions: maths, footnotes, task lists, bare URLs, line breaks in table cells.

Each block is rendered separately, so that a reply that is streamed block by block looks like the
complete reply. Therefore footnotes have no links, and are shown where they are written.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_MATH_CHARS = 2_000
MAX_MATH_LINES = 100
# The opening delimiters of maths and their closing delimiters. The first two are for blocks.
DELIMITERS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
# Text in escaped brackets is maths only if it contains one of these signs.
MATH_SIGN = re.compile(r"[\\^_=+]")
FOOTNOTE = re.compile(r"\[\^([0-9]{1,3}|[A-Za-z][A-Za-z0-9]{0,19})\]")
URL = re.compile(r"(?<![\w/.@-])(?:https?://|www\.)[^\s<>\"]{1,2000}", re.IGNORECASE)
LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
TASK_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
OPEN = "open"
PUNCTUATION = "?!.,:;*_~'"


def add_blocks(parser: MarkdownIt, is_streaming: bool = False) -> None:
    """Make `parser` recognise blocks of maths, and footnotes.

    With `is_streaming`, maths without a closing delimiter extends to the end of the text, and its
    info is OPEN.
    """

    def math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        last = None if state.is_code_block(start) else _last_math_line(state, start, end)
        if last is None or (last >= end and not is_streaming):
            return False
        if not silent:
            info = OPEN if last >= end else ""
            last = min(last, end - 1)
            lines = state.getLines(start, last + 1, state.blkIndent, False).strip()
            token = state.push("math_block", "math", 0)
            token.block, token.map, token.markup = True, [start, last + 1], lines[:2]
            token.content, token.info = lines[2:-2], info
            state.line = last + 1
        return True

    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", math_block, {"alt": interrupted})
    parser.block.ruler.before("reference", "footnote", _footnote, {"alt": ["paragraph"]})


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _last_math_line(state: StateBlock, start: int, end: int) -> int | None:
    """Return the last line of the maths that begins at line `start`. If it is not closed, return
    `end`. Return None if there is no maths.
    """
    text = _line(state, start)
    closing = DELIMITERS.get(text[:2])
    if closing is None or text[:2] == r"\(":
        return None
    text = text[2:]
    for number in range(start, min(end, start + MAX_MATH_LINES)):
        if number > start:
            text = _line(state, number)
            # Another opening delimiter also ends the search, so that many of them take linear time.
            if not text or text.startswith(r"\[") or state.sCount[number] < state.blkIndent:
                return None
        if (at := text.find(closing)) >= 0:
            return number if at == len(text) - 2 else None
    return end if end - start <= MAX_MATH_LINES else None


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    text = _line(state, start)
    label = FOOTNOTE.match(text)
    if state.is_code_block(start) or label is None or text[label.end() : label.end() + 1] != ":":
        return False
    if not silent:
        paragraph(state, start, end, False)
        opening, content, _closing = state.tokens[-3:]
        opening.attrSet("class", "footnote")
        content.content = f"{label[0]} {content.content[label.end() + 1 :].lstrip()}"
    return True


def add_inlines(parser: MarkdownIt) -> None:
    """Make `parser` recognise maths in brackets, references to footnotes, task lists, bare URLs,
    and line breaks in table cells.
    """
    parser.inline.ruler.before("escape", "bracket_maths", _bracket_maths)
    parser.inline.ruler.before("link", "footnote_reference", _footnote_reference)
    for rule in (_break_cells, _mark_tasks, _link_urls):
        parser.core.ruler.push(rule.__name__.lstrip("_"), rule)


def _bracket_maths(state: StateInline, silent: bool) -> bool:
    opening = state.src[state.pos : state.pos + 2]
    if opening not in (r"\(", r"\["):
        return False
    start = state.pos + 2
    end = state.src.find(DELIMITERS[opening], start, min(state.posMax, start + MAX_MATH_CHARS))
    content = state.src[start:end].strip() if end > 0 else ""
    if not content or (opening == r"\[" and not MATH_SIGN.search(content)):
        return False
    if not silent:
        kind = "math_inline" if opening == r"\(" else "math_display"
        state.push(kind, "math", 0).content = content
    state.pos = end + 2
    return True


def _footnote_reference(state: StateInline, silent: bool) -> bool:
    label = FOOTNOTE.match(state.src, state.pos, state.posMax)
    if label is None or state.src[label.end() : label.end() + 1] in ("(", "["):
        return False
    if not silent:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = label[1]
        state.push("sup_close", "sup", -1)
    state.pos = label.end()
    return True


def _break_cells(state: StateCore) -> None:
    for before, token in zip(state.tokens, state.tokens[1:], strict=False):
        if before.type in ("th_open", "td_open") and token.children:
            token.children = [part for child in token.children for part in _broken(child)]


def _broken(token: Token) -> Iterator[Token]:
    """Yield the parts of a text token, split at its line breaks, and the line breaks."""
    if token.type != "text" or not LINE_BREAK.search(token.content):
        yield token
        return
    for number, part in enumerate(LINE_BREAK.split(token.content)):
        if number:
            yield Token("hardbreak", "br", 0)
        yield Token("text", "", 0, content=part)


def _mark_tasks(state: StateCore) -> None:
    """Show the boxes of task lists as characters. Unlike checkboxes, these need no label."""
    for item, _paragraph, token in zip(
        state.tokens, state.tokens[1:], state.tokens[2:], strict=False
    ):
        if item.type != "list_item_open" or token.type != "inline" or not token.children:
            continue
        first = token.children[0]
        if first.type == "text" and (box := TASK_BOXES.get(first.content[:4])):
            first.content = box + first.content[4:]
            item.attrSet("class", "task")


def _link_urls(state: StateCore) -> None:
    for token in state.tokens:
        links = 0
        children: list[Token] = []
        for child in token.children or ():
            links += {"link_open": 1, "link_close": -1}.get(child.type, 0)
            children += _linked(state, child) if child.type == "text" and not links else [child]
        if token.children:
            token.children = children


def _linked(state: StateCore, token: Token) -> Iterator[Token]:
    """Yield the parts of a text token, with links in place of bare URLs."""
    end = 0
    for match in URL.finditer(token.content):
        url = _without_punctuation(match[0])
        yield Token("text", "", 0, content=token.content[end : match.start()])
        href = url if url.lower().startswith("http") else f"https://{url}"
        yield Token("link_open", "a", 1, {"href": state.md.normalizeLink(href)})
        yield Token("text", "", 0, content=url)
        yield Token("link_close", "a", -1)
        end = match.start() + len(url)
    yield Token("text", "", 0, content=token.content[end:]) if end else token


def _without_punctuation(url: str) -> str:
    """Return `url` without punctuation that belongs to the surrounding sentence."""
    surplus = url.count(")") - url.count("(")
    while url[-1] in PUNCTUATION or (url[-1] == ")" and surplus > 0):
        surplus -= url[-1] == ")"
        url = url[:-1]
    return url
