"""The results of parsers: a document with its sections, or the reason why there is none."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Section:
    """A part of a document that can be cited: a page, a slide, a sheet, a chapter.

    `label` is the text of a citation ("p. 3", "Slide 2", "Sheet Budget") or empty. `page` is the
    number of the page or slide, from 1. `headings` are the headings above the text, outermost
    first.
    """

    label: str
    page: int | None
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Document:
    """The text of a file, in reading order.

    `page_count` is None for files without pages. `warnings` are codes of
    `memory.files.reading.errors` about content that was left out, such as `empty_pages:3`.
    """

    media_type: str
    kind: str
    title: str
    page_count: int | None
    sections: tuple[Section, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ParsingBounds:
    """The limits that parsers check themselves. `child.py` sets the limits of time and memory."""

    max_pages: int
    max_text_chars: int


@dataclass(frozen=True)
class Parsed:
    """The result of parsing a file."""

    sections: Iterable[Section]
    title: str = ""
    page_count: int | None = None
    warnings: tuple[str, ...] = ()


class ParsingError(Exception):
    """The file cannot be read. `code` is one of the codes in `memory.files.reading.errors`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


# A function that parses a file. Its arguments are the file, its name and the limits.
Parser = Callable[[BinaryIO, str, ParsingBounds], Parsed]
