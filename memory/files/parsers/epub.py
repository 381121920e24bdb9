"""Parses EPUB books: the chapters in the order of the spine."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree

from memory.files.parsers import html
from memory.files.parsers.documents import Parsed, ParsingBounds, ParsingError, Section
from memory.files.parsers.packages import open_zip, parse_xml, read_part

CONTAINER = "META-INF/container.xml"
RIGHTS = "META-INF/rights.xml"
PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
MAX_CHAPTERS = 5_000


def parse(file: BinaryIO, name: str, bounds: ParsingBounds) -> Parsed:
    """Return a section for each heading of each chapter."""
    archive = open_zip(file)
    if RIGHTS in archive.namelist():
        raise ParsingError("encrypted")
    root_file = parse_xml(read_part(archive, CONTAINER)).find(".//{*}rootfile")
    if root_file is None:
        raise ParsingError("damaged")
    path = root_file.get("full-path", "")
    package = parse_xml(read_part(archive, path))
    title = package.findtext(".//{*}metadata/{*}title") or ""
    return Parsed(_sections(archive, package, posixpath.dirname(path)), title=title.strip())


def _sections(archive: ZipFile, package: etree._Element, folder: str) -> Iterator[Section]:
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    chapters = {
        it.get("href"): None
        for ref in package.iterfind(".//{*}spine/{*}itemref")
        if (it := items.get(ref.get("idref"))) is not None and it.get("media-type") in PAGES
    }
    titles = _contents(archive, items.values(), folder)
    for href in list(chapters)[:MAX_CHAPTERS]:
        path = _path(folder, href or "")
        try:
            root = html.tree(read_part(archive, path))
        except KeyError:
            # If a chapter is missing or empty, only that chapter is left out.
            continue
        except ParsingError as error:
            if error.code == "no_text":
                continue
            raise
        for section in html.sections(root):
            headings = section.headings or tuple(filter(None, [titles.get(path, "")]))
            yield replace(section, headings=headings)


def _contents(archive: ZipFile, items: object, folder: str) -> dict[str, str]:
    """Return the titles of chapters from the table of contents of EPUB 2."""
    titles: dict[str, str] = {}
    for item in items:  # type: ignore[attr-defined]
        if item.get("media-type") != "application/x-dtbncx+xml":
            continue
        try:
            contents = parse_xml(read_part(archive, _path(folder, item.get("href", ""))))
        except (KeyError, etree.XMLSyntaxError):
            continue
        for point in contents.iterfind(".//{*}navPoint"):
            target, label = point.find("{*}content"), point.findtext("{*}navLabel/{*}text")
            if target is not None and label:
                path = _path(folder, target.get("src", "").partition("#")[0])
                titles.setdefault(path, " ".join(label.split()))
    return titles


def _path(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
