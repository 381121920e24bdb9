"""Parses HTML: one section for each heading, tables as rows."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.markdown import open_headings
from memory.files.parsers.plain_text import decode

_CHARSET = re.compile(
    rb"""(?:charset|encoding)\s{0,5}=\s{0,5}["']?\s{0,5}([A-Za-z0-9_.:-]{2,40})"""
)
# The number of bytes at the beginning that may declare the encoding. HTML standard, 4.2.5.4
CHARSET_WITHIN_BYTES = 4096
HEADINGS = {f"h{level}": level for level in range(1, 7)}
SKIPPED = frozenset("script style template noscript svg math iframe object select".split())
BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog dir div dl dt fieldset
    figcaption figure footer form header hr legend li main nav ol p pre section summary table
    tbody tfoot thead tr ul caption
    """.split()
)
_SPACES = re.compile(r"[ \t\n\r\f\u00a0]+")


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each heading. Scripts and styles are left out."""
    root = tree(file.read())
    return Parsed(sections(root), title=page_title(root))


def tree(data: bytes, charset: str = "") -> etree._Element:
    """Parse HTML or XHTML, even if it is malformed. No URL in it is loaded.

    `charset` replaces the encoding that the page declares. Raises `ParsingError` if the page is
    empty, or if its elements are nested too deeply, because the parser leaves out the text that
    follows.
    """
    declared = _CHARSET.search(data[:CHARSET_WITHIN_BYTES])
    text = decode(data, charset or (declared[1].decode() if declared else ""))
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    root = etree.fromstring(text.encode(), parser)
    if any(it.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for it in parser.error_log):
        raise ParsingError("too_deep")
    if root is None:
        raise ParsingError("no_text")
    return root


def page_title(root: etree._Element) -> str:
    """Return the title in the page's head."""
    title = root.find(".//head/title")
    return " ".join((title.text or "").split()) if title is not None else ""


def sections(root: etree._Element) -> Iterator[Section]:
    """Yield a section for each heading."""
    text = _Text()
    walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            if tag in SKIPPED or tag == "head":
                walk.skip_subtree()
                continue
            yield from text.start(tag)
            text.add(element.text)
        else:
            if event == "end" and tag not in SKIPPED and tag != "head":
                text.end(tag)
            text.add(element.tail)
    yield from text.close()


class _Text:
    """Collects the text between two headings."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.heading: list[str] | None = None
        self.pre = 0
        # For each open row, whether it already has a cell.
        self.rows: list[bool] = []

    def start(self, tag: str) -> Iterator[Section]:
        if tag in HEADINGS:
            yield from self.close()
            self.heading = []
        elif tag in ("td", "th"):
            if self.rows and self.rows[-1]:
                self.line.append(" | ")
            elif not self.rows:
                self.end_line()
            if self.rows:
                self.rows[-1] = True
        elif tag == "br":
            self.end_line()
        elif tag in BLOCKS:
            self.end_block(tag)
            if tag == "li":
                self.line.append("- ")
            elif tag == "tr":
                self.rows.append(False)
            elif tag == "pre":
                self.pre += 1

    def end(self, tag: str) -> None:
        if tag in HEADINGS and self.heading is not None:
            words = " ".join("".join(self.heading).split())
            if words:
                self.headings = open_headings(self.headings, HEADINGS[tag], words)
            self.heading = None
        elif tag in BLOCKS:
            if tag == "tr" and self.rows:
                self.rows.pop()
            elif tag == "pre" and self.pre:
                self.end_line(keep=True)
                self.pre -= 1
            self.end_block(tag)

    def add(self, text: str | None) -> None:
        if not text:
            return
        if self.heading is not None:
            self.heading.append(text)
        elif self.pre and not self.rows:
            *whole, last = text.split("\n")
            for line in whole:
                self.line.append(line)
                self.end_line(keep=True)
            self.line.append(last)
        else:
            self.line.append(_SPACES.sub(" ", text))

    def end_block(self, tag: str) -> None:
        # Paragraphs in a cell do not begin a new line.
        if self.rows and tag != "tr":
            self.line.append(" ")
            return
        self.end_line()
        if tag in ("p", "table", "ul", "ol", "pre", "blockquote") and self.lines and self.lines[-1]:
            self.lines.append("")

    def end_line(self, keep: bool = False) -> None:
        if self.rows:
            self.line.append(" ")
            return
        line = "".join(self.line)
        line = line.rstrip() if keep else _SPACES.sub(" ", line).strip()
        if keep or line.strip(" |-"):
            self.lines.append(line)
        self.line = []

    def close(self) -> Iterator[Section]:
        """Yield the section that ends here."""
        self.rows.clear()
        self.end_line()
        text = "\n".join(self.lines).strip("\n")
        self.lines = []
        if text.strip() or self.headings:
            yield Section("", None, tuple(heading for _, heading in self.headings), text)
