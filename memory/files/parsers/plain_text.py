"""Parses plain text and source code. Other parsers use it to decode text."""

import codecs
import re
from typing import BinaryIO

from memory.files.parsers.documents import Parsed, ParsingBounds, Section

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Control characters other than tab, line feed and carriage return. PostgreSQL stores no NUL.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# The number of bytes that are examined to detect UTF-16 without a byte order mark.
_SAMPLE_BYTES = 4096
# Text is read as UTF-8 if fewer than one in this number of its non-ASCII bytes are invalid.
MAX_DAMAGED_PART = 20


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return the whole text as one section."""
    return Parsed([Section("", None, (), decode(file.read()))])


def decode(data: bytes, declared: str = "") -> str:
    """Decode text: by its byte order mark, or as UTF-8, in the `declared` encoding, or as
    Windows-1252.

    Any bytes can be decoded. Line ends become line feeds, and control characters are removed.
    """
    return clean(_decoded(data, declared))


def clean(text: str) -> str:
    """Return `text` with line feeds as line ends and without control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATES.sub("\ufffd", text)
    return _CONTROLS.sub(lambda match: "\n" if match[0] == "\x0c" else "", text)


def _decoded(data: bytes, declared: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    sample = data[:_SAMPLE_BYTES]
    # In UTF-16, every second byte of Latin text is zero.
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = sample[start::2]
        if half and half.count(0) > len(half) * 0.7:
            return data.decode(encoding, "replace")
    # Text in these encodings, such as ISO-2022-JP, consists of ASCII and is also valid UTF-8.
    is_seven_bit = declared.lower().startswith("iso-2022")
    for encoding in filter(None, (declared, "utf-8") if is_seven_bit else ("utf-8", declared)):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError, ValueError):
            continue
    text = data.decode("utf-8", "replace")
    damaged, longer = text.count("\ufffd"), len(data) - len(text)
    # Accept UTF-8 that is cut off or damaged in a few places.
    if damaged * MAX_DAMAGED_PART < longer:
        return text
    return data.decode("cp1252", "replace")
