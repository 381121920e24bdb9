"""Passages: sections of a document cut into parts as large as one chunk. Pure functions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.recall.chunking import MAX_CHUNK_TOKENS
from projects.core import token_counting
from projects.core.text import storable

# The innermost headings that a passage has, those that its chunk repeats, and the characters of
# each.
MAX_PATH = 4
MAX_HEADINGS = 2
MAX_HEADING_CHARS = 200
MAX_LABEL_CHARS = 200
# More characters than almost any token has.
MAX_TOKEN_CHARS = 10
HEADING_SEPARATOR = " › "
# A piece ends after a line, or after a sentence in a long line.
_PIECE_END = re.compile(r"\n+|(?<=[.!?…。！？])[ \t]+")


class SectionText(Protocol):
    """A part of a document: a page, a slide, a sheet, or the text below a heading."""

    @property
    def label(self) -> str: ...
    @property
    def page(self) -> int | None: ...
    @property
    def headings(self) -> Sequence[str]: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class PassageText:
    """A passage before it is stored; its columns have the same names."""

    section: int
    page: int | None
    label: str
    headings: str
    text: str


def split_sections(
    sections: Iterable[SectionText], max_tokens: int = MAX_CHUNK_TOKENS
) -> Iterator[PassageText]:
    """Return the passages of a document. Sections without text have none."""
    for number, section in enumerate(sections, start=1):
        path = [
            " ".join(storable(heading).split())[:MAX_HEADING_CHARS] for heading in section.headings
        ]
        headings = HEADING_SEPARATOR.join(filter(None, path[-MAX_PATH:]))
        label = " ".join(storable(section.label).split())[:MAX_LABEL_CHARS]
        for text in split_text(storable(section.text), max_tokens):
            yield PassageText(number, section.page, label, headings, text)


def split_text(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` after lines and sentences into parts of at most `max_tokens` tokens.

    The parts, one after the other, are the text. White space that follows a part belongs to it.
    """
    part, size = "", 0
    for piece in _pieces(text, max_tokens):
        tokens = token_counting.count(piece)
        if part.strip() and piece.strip() and size + tokens > max_tokens:
            yield part
            part, size = "", 0
        part += piece
        size += tokens
    if part.strip():
        yield part


def _pieces(text: str, max_tokens: int) -> Iterator[str]:
    """Return lines and sentences; one that is too long is cut, at a space if possible."""
    start = 0
    for end in [*(match.end() for match in _PIECE_END.finditer(text)), len(text)]:
        piece, start = text[start:end], end
        # Only a window is counted at a time: a line may have millions of characters.
        while (window := piece[: max_tokens * MAX_TOKEN_CHARS]) and (
            len(window) < len(piece) or token_counting.count(window) > max_tokens
        ):
            head = token_counting.truncate(window, max_tokens) or window[:1]
            space = head.rfind(" ") + 1
            # A space in the first half would make the part too short.
            head = head[:space] if space > len(head) // 2 else head
            yield head
            piece = piece[len(head) :]
        if piece:
            yield piece


def chunk_text(headings: str, text: str) -> str:
    """Return the text of the chunk of a passage: below its headings, unless it begins with them."""
    text = text.strip()
    path = headings.split(HEADING_SEPARATOR)[-MAX_HEADINGS:] if headings else []
    shown = [heading for heading in path if not text.startswith(heading)]
    return f"{HEADING_SEPARATOR.join(shown)}\n{text}" if shown else text
