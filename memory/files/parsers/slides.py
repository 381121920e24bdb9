"""Parses PowerPoint presentations: a section for each slide, with its notes."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, BinaryIO

from pptx import Presentation
from pptx.exc import PackageNotFoundError
from pptx.oxml.ns import qn
from pptx.slide import Slide

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.packages import parse_xml
from memory.files.parsers.plain_text import clean
from memory.files.parsers.tables import row_text

CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"
DIAGRAM_DATA = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
FORMULA_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
GROUPS = {qn("p:spTree"), qn("p:grpSp")}
PARAGRAPH, TEXT, BREAK = qn("a:p"), qn("a:t"), qn("a:br")
# The data of a series of a chart: its categories or x values, then its values.
CATEGORIES, VALUES = (qn("c:cat"), qn("c:xVal")), (qn("c:val"), qn("c:yVal"))
NUMBERS = (qn("c:numCache"), qn("c:numLit"))
BUBBLE_SIZE = qn("c:bubbleSize")
DIGITS = 12
EPOCH = date(1899, 12, 30)
MAX_DAY = 200_000
# The parts of a number format that do not stand for digits: conditions, colours, literal text.
_LITERAL = re.compile(r'\[[^\[\]]*\]|"[^"]*"|\\.')


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each slide."""
    try:
        presentation = Presentation(file)
    except (PackageNotFoundError, KeyError) as error:
        raise ParsingError("damaged") from error
    slides = list(presentation.slides)
    if len(slides) > bounds.max_pages:
        raise ParsingError("too_many_pages")
    sections = [_section(number, slide) for number, slide in enumerate(slides, start=1)]
    title = clean(presentation.core_properties.title or "")
    # Ignore the default title of presentations without a title.
    title = "" if title.lower().startswith("powerpoint pr") else title
    return Parsed(sections, title=title, page_count=len(slides))


def _section(number: int, slide: Slide) -> Section:
    title_shape = slide.shapes.title
    title_element = None if title_shape is None else title_shape._element
    title = " ".join(_paragraphs(title_element)) if title_element is not None else ""
    shapes = _shapes(slide.shapes._spTree)
    lines = [line for it in shapes if it is not title_element for line in _lines(slide, it)]
    if slide.has_notes_slide:
        frame = slide.notes_slide.notes_text_frame
        notes = list(_paragraphs(frame._element)) if frame is not None else []
        lines += ["", "Notes:", *notes] if notes else []
    headings = tuple(filter(None, [" ".join(title.split())[:300]]))
    return Section(f"Slide {number}", number, headings, "\n".join(lines).strip())


def _shapes(element: Any) -> Iterator[Any]:
    """Yield the elements of the shapes, including shapes in groups.

    A shape may be stored in several forms, for newer and older programs, for example a formula. The
    first form is used.
    """
    for child in element:
        if child.tag in GROUPS:
            yield from _shapes(child)
        elif (choice := child.find(CHOICE)) is not None:
            yield from _shapes(choice)
        else:
            yield child


def _lines(slide: Slide, shape: Any) -> Iterator[str]:
    if (table := shape.find(f".//{qn('a:tbl')}")) is not None:
        for row in table.iter(qn("a:tr")):
            if line := row_text([" ".join(_paragraphs(cell)) for cell in row.iter(qn("a:tc"))]):
                yield line
    elif (chart := shape.find(f".//{qn('c:chart')}")) is not None:
        yield from _chart_lines(_related_xml(slide, chart.get(qn("r:id"))))
    elif (diagram := shape.find(f".//{DIAGRAM_DATA}")) is not None:
        yield from _paragraphs(_related_xml(slide, diagram.get(qn("r:dm"))))
    else:
        yield from _paragraphs(shape)


def _related_xml(slide: Slide, relationship: str | None) -> Any:
    """Return a part that a slide refers to; an empty element if it is missing."""
    with suppress(KeyError):
        return parse_xml(slide.part.related_part(relationship or "").blob)
    return parse_xml(b"<missing/>")


def _chart_lines(chart: Any) -> Iterator[str]:
    """Yield the titles and written labels of a chart, and each plot as lines of a table."""
    for text in chart.iter(qn("c:title"), qn("c:dLbl")):
        yield from _paragraphs(text)
        yield from _points(text).values()
    for plot in chart.iterfind(f".//{qn('c:plotArea')}/*"):
        columns: list[dict[int, str]] = []
        names: list[str] = []
        categories: dict[int, str] = {}
        for series in plot.iterfind(qn("c:ser")):
            data = {child.tag: child for child in series}
            own = next((_points(data[tag]) for tag in CATEGORIES if tag in data), {})
            # Each series of a scatter chart may have x values of its own.
            if columns and own != categories:
                yield from _table(categories, names, columns)
                names, columns = [], []
            categories = own
            names.append(_name(data.get(qn("c:tx"))))
            columns.append(next((_points(data[tag]) for tag in VALUES if tag in data), {}))
            if BUBBLE_SIZE in data:
                names.append("")
                columns.append(_points(data[BUBBLE_SIZE]))
        yield from _table(categories, names, columns)


def _table(
    categories: dict[int, str], names: list[str], columns: list[dict[int, str]]
) -> Iterator[str]:
    if header := row_text(["", *names]):
        yield header
    for index in sorted({*categories, *(index for column in columns for index in column)}):
        yield row_text([categories.get(index, ""), *(it.get(index, "") for it in columns)])


def _name(element: Any) -> str:
    """Return the name of a series, which is literal or a copy of cells."""
    if element is None:
        return ""
    return clean(element.findtext(qn("c:v")) or " ".join(_points(element).values())).strip()


def _points(element: Any) -> dict[int, str]:
    """Return the stored points of a name, of categories or of values, by their number.

    Categories in several levels are joined, the outermost level first.
    """
    points: dict[int, str] = {}
    levels = list(element.iter(qn("c:lvl"))) or [element]
    for level in levels:
        numbers = next(level.iter(*NUMBERS), None)
        code = None if numbers is None else numbers.findtext(qn("c:formatCode")) or ""
        texts = [
            (int(point.get("idx", "0")), _value(point.findtext(qn("c:v")) or "", code))
            for point in level.iter(qn("c:pt"))
        ]
        if level is levels[0]:
            points = dict(texts)
            continue
        # A point of an outer level stands for all inner points up to the next one.
        starts = sorted(texts, reverse=True)
        for index, text in points.items():
            outer = next((name for start, name in starts if start <= index), "")
            points[index] = f"{outer} {text}".strip()
    return points


def _value(text: str, code: str | None) -> str:
    """Return a stored value as text. `code` is the format of a number, and None for other text."""
    try:
        number = float(text if code is not None else "")
    except ValueError:
        return clean(text).strip()
    code = _LITERAL.sub("", code or "").lower()
    if ("y" in code or "d" in code) and 0 < number < MAX_DAY:
        return (EPOCH + timedelta(days=number)).isoformat()
    return f"{number * 100:.{DIGITS}g}%" if code.endswith("%") else f"{number:.{DIGITS}g}"


def _paragraphs(element: Any) -> Iterator[str]:
    for paragraph in element.iter(PARAGRAPH):
        pieces = [
            "\n" if it.tag == BREAK else it.text or ""
            for it in paragraph.iter(TEXT, FORMULA_TEXT, BREAK)
        ]
        if text := clean("".join(pieces)).strip():
            yield text
