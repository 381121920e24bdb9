"""Parses Markdown: one section for each heading, with the unchanged source text."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from memory.files.parsers.documents import Parsed, ParsingBounds, Section
from memory.files.parsers.plain_text import decode

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FRONT_TITLE = re.compile(r"title:[ \t]*(.{1,500})$")
MAX_HEADING_CHARS = 300


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each heading. The title comes from the front matter."""
    front, lines = _front_matter(decode(file.read()).split("\n"))
    titles = (_FRONT_TITLE.match(line[:600]) for line in front)
    title = next((match[1].strip(" \"'") for match in titles if match), "")
    return Parsed(_sections(lines), title=title)


def open_headings(above: list[tuple[int, str]], level: int, heading: str) -> list[tuple[int, str]]:
    """Return the headings that apply after `heading`: those of higher levels above it, and
    itself.
    """
    return [item for item in above if item[0] < level] + [(level, heading[:MAX_HEADING_CHARS])]


def _front_matter(lines: list[str]) -> tuple[list[str], list[str]]:
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:200], start=1):
            if line.rstrip() in ("---", "..."):
                return lines[1:number], lines[number + 1 :]
    return [], lines


def _sections(lines: list[str]) -> Iterator[Section]:
    above: list[tuple[int, str]] = []
    body: list[str] = []
    fence = ""
    for line in lines:
        level, heading = 0, ""
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1][0] == fence[0] and len(mark[1]) >= len(fence))):
            fence = "" if fence else mark[1]
        elif not fence:
            level, heading = _heading(line, body)
        if level:
            yield from _section(above, body)
            above = open_headings(above, level, heading)
            body = []
        else:
            body.append(line)
    yield from _section(above, body)


def _heading(line: str, body: list[str]) -> tuple[int, str]:
    """Return level and text of a heading: `line` itself, or the text that `line` underlines."""
    if match := _HEADING.match(line):
        return len(match[1]), line[match.end() :][:1200].strip().rstrip("#").rstrip()
    before = body[-1].strip() if body else ""
    if before and len(before) <= MAX_HEADING_CHARS and not before.startswith(("|", ">", "-", "*")):
        # Only a paragraph of one line can be underlined.
        alone = len(body) == 1 or not body[-2].strip()
        if alone and (match := _UNDERLINE.match(line[:1200])):
            body.pop()
            return (1 if match[1].startswith("=") else 2), before
    return 0, ""


def _section(above: list[tuple[int, str]], body: list[str]) -> Iterator[Section]:
    text = "\n".join(body).strip("\n")
    if text.strip() or above:
        yield Section("", None, tuple(heading for _, heading in above), text)
