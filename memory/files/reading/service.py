"""Reads a file, or renders a page, in a separate process."""

import json
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from memory.files.parsers.documents import Document, Section
from memory.files.parsers.kernel import RESTRICTIONS
from memory.files.reading.archives import check_package
from memory.files.reading.errors import UnreadableFileError, unreadable
from memory.files.reading.limits import DEFAULT, ReadingLimits
from memory.files.reading.ocr import read_scanned
from memory.files.reading.processes import run_parser
from memory.files.reading.recognition import MEDIA_TYPES, recognise

log = logging.getLogger(__name__)

PACKAGES = ("docx", "pptx", "xlsx", "epub")
PNG_MAGIC = b"\x89PNG"
MAX_IMAGE_WIDTH = 2_000


def read_document(
    path: Path,
    name: str = "",
    limits: ReadingLimits = DEFAULT,
    renew: Callable[[], None] = lambda: None,
) -> Document:
    """Return the text of the file at `path`. `name` is only used to distinguish types of text.

    Takes up to `limits.wall_s` seconds, for a scanned PDF also up to `limits.ocr_s`. Before each
    page of a scanned PDF, `renew` is called. Raises `UnreadableFileError`.
    """
    if path.stat().st_size > limits.max_bytes:
        raise unreadable("too_large", limits)
    kind = recognise(path, name)
    if kind == "zip":
        raise unreadable("unsupported", limits)
    if kind in PACKAGES:
        check_package(path)
    try:
        output = run_parser(path, limits, kind=kind, name=name)
    except UnreadableFileError as error:
        if error.reason == "scanned":
            return read_scanned(path, limits, page_image, renew)
        raise
    try:
        fields = json.loads(output)
        log_missing(tuple(name for name in RESTRICTIONS if name not in fields["enforced"]))
        return _document(kind, fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        # Output of another form: the file may have taken control of the parser.
        raise unreadable("damaged", limits) from error


@cache
def log_missing(restrictions: tuple[str, ...]) -> None:
    """Log the restrictions of parsers that the kernel does not enforce, once per process."""
    if restrictions:
        log.warning("parser_not_confined missing=%s", ",".join(restrictions))


def page_image(path: Path, page: int, width: int) -> bytes:
    """Return the page with the number `page` (from 1) of the PDF at `path`, as a PNG of `width`
    pixels.

    Raises `UnreadableFileError`.
    """
    limits = DEFAULT
    if recognise(path, "") != "pdf":
        raise unreadable("unsupported", limits)
    if page < 1:
        raise unreadable("no_page", limits)
    width = max(1, min(width, MAX_IMAGE_WIDTH))
    image = run_parser(path, limits, kind="pdf", page=page, width=width)
    if not image.startswith(PNG_MAGIC):
        raise unreadable("damaged", limits)
    return image


def _document(kind: str, fields: dict[str, Any]) -> Document:
    """Return the document from a parser's output. Raises `TypeError` if it has another form."""
    return Document(
        media_type=MEDIA_TYPES[kind],
        kind=kind,
        title=_text(fields["title"]),
        page_count=_number(fields["page_count"]),
        sections=tuple(
            Section(
                _text(item["label"]),
                _number(item["page"]),
                tuple(map(_text, item["headings"])),
                _text(item["text"]),
            )
            for item in fields["sections"]
        ),
        warnings=tuple(map(_text, fields["warnings"])),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError
    return value


def _number(value: object) -> int | None:
    if value is not None and not isinstance(value, int):
        raise TypeError
    return value
