"""Reads parts of documents that are zip files, such as Office documents."""

from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

from lxml import etree

from memory.files.parsers.documents import ParsingError

MAX_PART_BYTES = 100_000_000


def open_zip(file: BinaryIO) -> ZipFile:
    """Open a zip file. Raises `ParsingError` if it is damaged."""
    try:
        return ZipFile(file)
    except (BadZipFile, ValueError, OSError) as error:
        raise ParsingError("damaged") from error


def read_part(archive: ZipFile, name: str) -> bytes:
    """Return the file `name` of `archive`. Raises `KeyError` if there is none."""
    with archive.open(name) as part:
        data = part.read(MAX_PART_BYTES + 1)
    if len(data) > MAX_PART_BYTES:
        raise ParsingError("too_large")
    return data


def parse_xml(data: bytes) -> etree._Element:
    """Parse XML. Entities are not expanded, and nothing that the XML refers to is loaded."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False
    )
    return etree.fromstring(data, parser)
