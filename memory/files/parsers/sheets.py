"""Parses Excel workbooks: the rows of each sheet, with stored results instead of formulas."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO
from zipfile import BadZipFile

from openpyxl import load_workbook
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.plain_text import clean
from memory.files.parsers.tables import table_blocks

MAX_SHEETS = 1_000
# The maximum number of rows in Excel.
MAX_ROWS = 2**20
# The number of digits that Excel shows.
DIGITS = 15


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return the rows of each sheet in sections. Each section begins with the header row."""
    # openpyxl would open every sheet for its dimensions, which some programs store wrongly. With
    # 10,000 sheets, this takes 30 s.
    ReadOnlyWorksheet._get_size = lambda sheet: None
    try:
        workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except BadZipFile as error:
        raise ParsingError("damaged") from error
    sheets = workbook.worksheets
    left_out = len(sheets) - MAX_SHEETS
    warnings = [f"left_out_sheets:{left_out}"] if left_out > 0 else []
    title = clean(str(workbook.properties.title or ""))
    return Parsed(_sections(sheets[:MAX_SHEETS]), title=title, warnings=tuple(warnings))


def _sections(sheets: Iterable[Any]) -> Iterator[Section]:
    for sheet in sheets:
        label = f"Sheet {clean(sheet.title)}"
        rows = ([_value(cell) for cell in row] for row in sheet.iter_rows(max_row=MAX_ROWS))
        for block in table_blocks(rows):
            yield Section(label, None, (), block)


def _value(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float | int):
        return _number(value, cell.number_format)
    if isinstance(value, datetime):
        day = value.time() == time() and value.isoformat(" ")[:10]
        return day or value.isoformat(" ", "seconds" if value.second else "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else clean(str(value))


def _number(value: float, number_format: str) -> str:
    if number_format and number_format.endswith("%"):
        return f"{value * 100:.{DIGITS}g}%"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
