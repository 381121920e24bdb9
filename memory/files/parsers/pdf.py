"""Parses PDFs page by page, and renders pages as images, with PDFium."""

import ctypes
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.plain_text import clean

# A hyphen at the end of a line. PDFium represents it by one of these characters.
_HYPHEN = re.compile("[\x02\ufffe]\r?\n?")
MAX_BOOKMARKS = 20_000
MAX_BOOKMARK_DEPTH = 6
FIELDS_WITH_TEXT = (
    *(pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX),
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
MAX_FIELDS = 2_000
MAX_FIELD_BYTES = 100_000
MAX_IMAGE_PIXELS = 16_000_000


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each page with text. Bookmarks become its headings."""
    pdf = _open(file)
    if len(pdf) > bounds.max_pages:
        raise ParsingError("too_many_pages")
    if pdf.get_formtype() != pdfium.FORMTYPE_NONE:
        pdf.init_forms()
    headings = _headings(pdf)
    sections: list[Section] = []
    empty, total = 0, 0
    for number in range(1, len(pdf) + 1):
        text = _text(pdf, number)
        total += len(text)
        if total > bounds.max_text_chars:
            raise ParsingError("too_much_text")
        if text:
            sections.append(Section(f"p. {number}", number, headings[number], text))
        else:
            empty += 1
    if not sections:
        raise ParsingError("scanned" if _has_images(pdf) else "no_text")
    warnings = (f"empty_pages:{empty}",) if empty else ()
    title = pdf.get_metadata_value("Title")
    return Parsed(sections, title=clean(title), page_count=len(pdf), warnings=warnings)


def _has_images(pdf: pypdfium2.PdfDocument) -> bool:
    """Return whether one of the first pages shows an image."""
    for number in range(min(len(pdf), 3)):
        with suppress(pypdfium2.PdfiumError):
            if any(pdf[number].get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE])):
                return True
    return False


def render(file: BinaryIO, number: int, width: int) -> bytes:
    """Return page `number` as a PNG that is `width` pixels wide. Very high pages get smaller
    images.
    """
    pdf = _open(file)
    if number > len(pdf):
        raise ParsingError("no_page")
    page = pdf[number - 1]
    page_width, page_height = page.get_size()
    scale = width / max(page_width, 1)
    pixels = page_width * page_height * scale * scale
    if pixels > MAX_IMAGE_PIXELS:
        scale *= (MAX_IMAGE_PIXELS / pixels) ** 0.5
    image = page.render(scale=scale).to_pil()
    output = io.BytesIO()
    image.save(output, "PNG")
    return output.getvalue()


def _open(file: BinaryIO) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as error:
        locked = error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
        raise ParsingError("encrypted" if locked else "damaged") from error


def _text(pdf: pypdfium2.PdfDocument, number: int) -> str:
    try:
        page = pdf[number - 1]
    except pypdfium2.PdfiumError:
        # If a page is damaged, only its text is missing.
        return ""
    text_page = page.get_textpage()
    text = clean(_HYPHEN.sub("", text_page.get_text_bounded()))
    text_page.close()
    lines = [line.rstrip() for line in text.split("\n")]
    if pdf.formenv:
        lines += _form_values(pdf, page)
    page.close()
    return "\n".join(lines).strip()


def _form_values(pdf: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[str]:
    """Yield the filled-in fields of a form, which are not part of the page's text."""
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_FIELDS)):
        field = pdfium.FPDFPage_GetAnnot(page, index)
        if pdfium.FPDFAnnot_GetFormFieldType(pdf.formenv, field) in FIELDS_WITH_TEXT:
            name = _field_text(pdfium.FPDFAnnot_GetFormFieldAlternateName, pdf, field)
            value = _field_text(pdfium.FPDFAnnot_GetFormFieldValue, pdf, field)
            if value:
                yield f"{name}: {value}" if name else value
        pdfium.FPDFPage_CloseAnnot(field)


def _field_text(getter: Callable[..., int], pdf: pypdfium2.PdfDocument, field: object) -> str:
    size = getter(pdf.formenv, field, None, 0)
    buffer = ctypes.create_string_buffer(min(size, MAX_FIELD_BYTES))
    getter(pdf.formenv, field, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), len(buffer))
    return clean(buffer.raw.decode("utf-16-le", "ignore").rstrip("\0")).strip()


def _headings(pdf: pypdfium2.PdfDocument) -> dict[int, tuple[str, ...]]:
    """Return, for each page, the path of bookmarks to which it belongs.

    A page with several bookmarks belongs to the first, and the pages after it to the last.
    """
    first: dict[int, tuple[str, ...]] = {}
    last: dict[int, tuple[str, ...]] = {}
    path: list[str] = []
    for bookmark in islice(pdf.get_toc(max_depth=MAX_BOOKMARK_DEPTH), MAX_BOOKMARKS):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        path[bookmark.level :] = [" ".join(clean(bookmark.get_title()).split())[:300]]
        if index is not None:
            last[index + 1] = tuple(filter(None, path))
            first.setdefault(index + 1, last[index + 1])
    headings: dict[int, tuple[str, ...]] = {}
    current: tuple[str, ...] = ()
    for number in range(1, len(pdf) + 1):
        headings[number] = first.get(number, current)
        current = last.get(number, current)
    return headings
