"""Parses PowerPoint presentations: a section for each slide, with its notes."""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from pptx import Presentation
from pptx.exc import PackageNotFoundError
from pptx.oxml.ns import qn
from pptx.slide import Slide

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.packages import parse_xml
from memory.files.parsers.plain_text import clean
from memory.files.parsers.tables import row_text

DIAGRAM_URI = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
DIAGRAM_DATA = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
PARAGRAPH, TEXT, BREAK = qn("a:p"), qn("a:t"), qn("a:br")


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
    title = " ".join(_paragraphs(title_shape._element)) if title_shape is not None else ""
    shapes = [
        it for it in slide.shapes if title_shape is None or it.shape_id != title_shape.shape_id
    ]
    lines = [line for shape in _flat(shapes) for line in _lines(slide, shape)]
    if slide.has_notes_slide:
        frame = slide.notes_slide.notes_text_frame
        notes = list(_paragraphs(frame._element)) if frame is not None else []
        lines += ["", "Notes:", *notes] if notes else []
    headings = tuple(filter(None, [" ".join(title.split())[:300]]))
    return Section(f"Slide {number}", number, headings, "\n".join(lines).strip())


def _flat(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield the shapes, including shapes in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _flat(shape.shapes)
        else:
            yield shape


def _lines(slide: Slide, shape: Any) -> Iterator[str]:
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            if line := row_text([" ".join(_paragraphs(cell._tc)) for cell in row.cells]):
                yield line
    elif getattr(shape, "has_chart", False):
        yield from _chart_lines(shape)
    elif (diagram := shape._element.find(f".//{DIAGRAM_DATA}")) is not None:
        part = slide.part.related_part(diagram.get(qn("r:dm")))
        yield from _paragraphs(parse_xml(part.blob))
    else:
        yield from _paragraphs(shape._element)


def _chart_lines(shape: Any) -> Iterator[str]:
    """Yield the title and the values of a chart as lines of a table."""
    chart = shape.chart
    if chart.has_title and chart.chart_title.has_text_frame:
        yield chart.chart_title.text_frame.text
    for plot in chart.plots:
        series = list(plot.series)
        yield row_text(["", *(str(it.name) for it in series)])
        for index, category in enumerate(plot.categories):
            values = [it.values[index] if index < len(it.values) else "" for it in series]
            yield row_text([str(category), *("" if it is None else str(it) for it in values)])


def _paragraphs(element: Any) -> Iterator[str]:
    for paragraph in element.iter(PARAGRAPH):
        pieces = [(it.text or "") if it.tag == TEXT else "\n" for it in paragraph.iter(TEXT, BREAK)]
        if text := clean("".join(pieces)).strip():
            yield text
