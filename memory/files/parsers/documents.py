"""What a parser returns: a document and its sections, or the reason why there is none."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Section:
    """A part of a document with a place of its own: a page, a slide, a sheet, a chapter.

    `label` is what a citation shows ("p. 3", "Slide 2", "Sheet Budget", or nothing), `page` the
    number of the page or slide, from 1. `headings` are those above the text, the outermost first.
    """

    label: str
    page: int | None
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Document:
    """The text of a file, in reading order.

    `page_count` is None for files without pages. `warnings` are English sentences about content
    that was left out.
    """

    media_type: str
    kind: str
    title: str
    page_count: int | None
    sections: tuple[Section, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ParsingBounds:
    """The bounds that parsers check themselves; `child.py` sets those of time and memory."""

    max_pages: int
    max_text_chars: int


@dataclass(frozen=True)
class Parsed:
    """The result of a parser."""

    sections: Iterable[Section]
    title: str = ""
    page_count: int | None = None
    warnings: tuple[str, ...] = ()


class ParsingError(Exception):
    """The file cannot be read. `code` is one of those in `memory.files.reading.errors`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


# Takes the file, its name and the bounds.
Parser = Callable[[BinaryIO, str, ParsingBounds], Parsed]
