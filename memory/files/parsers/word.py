"""Parses Word documents: a section for each heading, tables as rows, notes after their section."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from docx import Document as open_word
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.markdown import open_headings
from memory.files.parsers.packages import parse_xml
from memory.files.parsers.plain_text import clean
from memory.files.parsers.tables import table_blocks

# Style names that Word stores in English in every language.
_HEADING_STYLE = re.compile(r"heading (\d)", re.I)
MAX_STYLE_DEPTH = 20
# Elements that contain no text, deleted text, or a copy of other text for old programs.
SKIPPED = frozenset(
    qn(tag)
    for tag in ("w:del", "w:moveFrom", "w:instrText", "w:delText", "w:pPr", "w:rPr", "w:sdtPr")
) | {"{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
PARAGRAPH, TABLE, ROW, CELL, TEXT = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc"), qn("w:t")
BOX = qn("w:txbxContent")
CHARACTERS = {
    **dict.fromkeys((qn("w:tab"), qn("w:ptab")), "\t"),
    **dict.fromkeys((qn("w:br"), qn("w:cr")), "\n"),
    qn("w:noBreakHyphen"): "-",
}
NOTES = {qn("w:footnoteReference"): "footnotes", qn("w:endnoteReference"): "endnotes"}
RELATIONSHIPS = {"footnotes": RELATIONSHIP_TYPE.FOOTNOTES, "endnotes": RELATIONSHIP_TYPE.ENDNOTES}


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each heading."""
    try:
        document = open_word(file)
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise ParsingError("damaged") from error
    walk = _Walk(document)
    walk.blocks(document.element.body)
    walk.close()
    title = clean(document.core_properties.title or "") or walk.title
    return Parsed(walk.sections, title=title)


class _Walk:
    """Collects the sections of a document."""

    def __init__(self, document: Any) -> None:
        self.levels = _style_levels(document)
        self.notes = {kind: _notes(document.part, kind) for kind in RELATIONSHIPS}
        self.sections: list[Section] = []
        self.headings: list[tuple[int, str]] = []
        self.lines: list[str] = []
        self.note_lines: list[str] = []
        self.title = ""

    def blocks(self, parent: Any) -> None:
        """Add the paragraphs and tables in `parent`, including those in content controls."""
        for element in parent:
            if element.tag == PARAGRAPH:
                self.paragraph(element)
            elif element.tag == TABLE:
                self.lines.append("")
                for block in table_blocks(self.rows(element)):
                    self.lines += [block, ""]
            elif element.tag not in SKIPPED:
                self.blocks(element)

    def paragraph(self, element: Any) -> None:
        pieces: list[str] = []
        boxes: list[Any] = []
        self.inline(element, pieces, boxes)
        text = clean("".join(pieces)).strip()
        level = _outline_level(element)
        if level is None:
            level = self.levels.get(_style(element))
        if text and level:
            self.close()
            self.headings = open_headings(self.headings, level, " ".join(text.split()))
        elif text:
            if level == 0:
                self.title = self.title or text
            listed = element.find(f"{qn('w:pPr')}/{qn('w:numPr')}") is not None
            self.lines.append(f"- {text}" if listed else text)
        for box in boxes:
            self.blocks(box)

    def inline(self, element: Any, pieces: list[str], boxes: list[Any]) -> None:
        """Add the text of `element` to `pieces`, and the text boxes in it to `boxes`."""
        for child in element:
            tag = child.tag
            if tag == TEXT:
                pieces.append(child.text or "")
            elif tag in CHARACTERS:
                pieces.append(CHARACTERS[tag])
            elif tag in NOTES:
                note = self.notes[NOTES[tag]].get(child.get(qn("w:id")), "")
                if note:
                    self.note_lines.append(note)
            elif tag == BOX:
                boxes.append(child)
            elif tag not in SKIPPED:
                self.inline(child, pieces, boxes)

    def rows(self, table: Any) -> Iterator[list[str]]:
        """Yield the texts of the cells of each row. Tables inside cells become text."""
        for row in _children(table, ROW):
            yield [self.cell(cell) for cell in _children(row, CELL)]

    def cell(self, cell: Any) -> str:
        texts: list[str] = []
        for element in cell:
            if element.tag == PARAGRAPH:
                boxes: list[Any] = []
                pieces: list[str] = []
                self.inline(element, pieces, boxes)
                texts += [clean("".join(pieces)), *map(self.cell, boxes)]
            elif element.tag not in SKIPPED:
                texts.append(self.cell(element))
        return " ".join(texts)

    def close(self) -> None:
        """End the current section."""
        lines = [*self.lines, *(["", *self.note_lines] if self.note_lines else [])]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        if text or self.headings:
            path = tuple(heading for _, heading in self.headings)
            self.sections.append(Section("", None, path, text))
        self.lines, self.note_lines = [], []


def _children(element: Any, tag: str) -> Iterator[Any]:
    """Yield the children with `tag`, including those in content controls and insertions."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in SKIPPED and child.tag not in (PARAGRAPH, TABLE, ROW, CELL):
            yield from _children(child, tag)


def _style(paragraph: Any) -> str:
    style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    return style.get(qn("w:val"), "") if style is not None else ""


def _outline_level(element: Any) -> int | None:
    """Return the level of a heading; None for text. Level 10 means text: ECMA-376 17.3.1.20."""
    level = element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    value = level.get(qn("w:val"), "") if level is not None else ""
    return int(value) + 1 if value in set("012345678") and value else None


def _style_levels(document: Any) -> dict[str, int | None]:
    """Return the heading level of each style, by its id: 0 for the title, None for text."""
    styles = {style.get(qn("w:styleId"), ""): style for style in document.styles.element}
    return {key: _style_level(styles, style) for key, style in styles.items() if key}


def _style_level(styles: dict[str, Any], style: Any) -> int | None:
    for _ in range(MAX_STYLE_DEPTH):
        name = style.find(qn("w:name"))
        text = name.get(qn("w:val"), "") if name is not None else ""
        if text.lower() == "title":
            return 0
        if match := _HEADING_STYLE.fullmatch(text):
            return int(match[1]) or None
        if level := _outline_level(style):
            return level
        base = style.find(qn("w:basedOn"))
        style = styles.get(base.get(qn("w:val"), "")) if base is not None else None
        if style is None:
            break
    return None


def _notes(part: Any, kind: str) -> dict[str, str]:
    """Return the texts of footnotes or endnotes by their id."""
    try:
        root = parse_xml(part.part_related_by(RELATIONSHIPS[kind]).blob)
    # The last two occur for notes that are not in the file.
    except (KeyError, ValueError, AttributeError):
        return {}
    return {
        note.get(qn("w:id"), ""): clean("".join(it.text or "" for it in note.iter(TEXT))).strip()
        for note in root
    }
