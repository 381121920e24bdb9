"""Recognises the type of a file by its content. The name only distinguishes types of text."""

import codecs
import re
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from chat.importers.zip_files import open_member
from memory.files.reading.archives import open_package
from memory.files.reading.errors import unreadable
from memory.files.reading.limits import DEFAULT

_OFFICE = "application/vnd.openxmlformats-officedocument."
MEDIA_TYPES = {
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}wordprocessingml.document",
    "pptx": f"{_OFFICE}presentationml.presentation",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "markdown": "text/markdown",
    "html": "text/html",
    "epub": "application/epub+zip",
    "text": "text/plain",
    "code": "text/plain",
    "email": "message/rfc822",
    "zip": "application/zip",
}
SAMPLE_BYTES = 65_536
MAX_COMMENTS = 20
PDF_MAGIC = b"%PDF-"
# The number of first bytes that may contain the signature of a PDF. PDF 2.0, Annex I
PDF_MAGIC_WITHIN = 1024
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
# The signature of Office files before 2007, and of encrypted Office files.
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OLE_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
BINARY_MAGIC = (b"{\\rtf", b"%!PS", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"BZh")

NAMES = {
    "csv": "csv",
    "tsv": "tsv tab",
    "markdown": "md markdown mdown mkd",
    "html": "html htm xhtml",
    "email": "eml",
    "text": "txt text log rst adoc asc srt vtt",
    "code": """
        py pyi js mjs cjs ts tsx jsx java kt c h cc cpp cxx hpp cs go rs rb php pl pm sh bash zsh
        sql r jl lua swift scala clj ex exs erl hs ml fs vb ps1 css scss less json jsonl yaml yml
        toml ini cfg conf xml svg tex bib diff patch proto graphql tf dockerfile makefile ipynb
    """,
}
_KINDS = {ending: kind for kind, endings in NAMES.items() for ending in endings.split()}

_HTML = re.compile(r"<(!doctype\s{1,20}html|html|head|body)\b", re.I)
_TAG = re.compile(r"</?(html|head|body|title|div|p|table|h[1-6]|ul|span|a)\b", re.I)
_MAIL_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,60}):([ \t]|$)")
_MAIL_HEADERS = frozenset(
    "from to cc subject date received message-id mime-version return-path delivered-to".split()
)
# The minimum number of these headers in an email.
_MIN_MAIL_HEADERS = 3
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def recognise(path: Path, name: str = "") -> str:
    """Return the kind of the file at `path`: a key of `MEDIA_TYPES`.

    Raises `UnreadableFileError` for other kinds, and for encrypted files.
    """
    with path.open("rb") as file:
        sample = file.read(SAMPLE_BYTES)
    if not sample:
        raise unreadable("no_text", DEFAULT)
    # Before PDF: the first file of an archive may be a PDF that is not compressed.
    if sample.startswith(ZIP_MAGIC):
        with open_package(path) as archive:
            return _zip_kind(archive)
    if PDF_MAGIC in sample[: PDF_MAGIC_WITHIN + len(PDF_MAGIC)]:
        return "pdf"
    if sample.startswith(OLE_MAGIC):
        encrypted = OLE_ENCRYPTED in path.read_bytes()[: DEFAULT.max_bytes]
        raise unreadable("encrypted" if encrypted else "unsupported", DEFAULT)
    if sample.startswith(BINARY_MAGIC):
        raise unreadable("unsupported", DEFAULT)
    text = _text(sample)
    if text is None:
        raise unreadable("unsupported", DEFAULT)
    return _text_kind(text, PurePosixPath(name.lower()))


def _zip_kind(archive: ZipFile) -> str:
    names = set(archive.namelist())
    if "mimetype" in names:
        media_type = open_member(archive, "mimetype").read(100).strip()
        if media_type == b"application/epub+zip":
            return "epub"
        raise unreadable("unsupported", DEFAULT)
    if "[Content_Types].xml" in names:
        for kind, part in (("docx", "word/"), ("pptx", "ppt/"), ("xlsx", "xl/")):
            if any(name.startswith(part) and name.endswith(".xml") for name in names):
                if "xl/workbook.bin" in names:
                    break
                return kind
        raise unreadable("unsupported", DEFAULT)
    return "epub" if "META-INF/container.xml" in names else "zip"


def _text(sample: bytes) -> str | None:
    """Return the sample as text; None if it is not text."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return sample.decode("utf-16", "replace")
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        half, other = sample[start::2], sample[1 - start :: 2]
        if half.count(0) > 0.7 * len(half) and not other.count(0):
            return sample.decode(encoding, "replace")
    # Logs contain escape codes and form feeds. Text contains no other control characters.
    if len(_CONTROLS.findall(sample)) > len(sample) // 1000:
        return None
    return sample.decode("utf-8-sig", "replace")


def _text_kind(text: str, name: PurePosixPath) -> str:
    kind = _KINDS.get(name.suffix[1:] or name.name, "")
    if _HTML.match(_without_comments(text)):
        return "html"
    if text.startswith("<?xml"):
        return "html" if "<html" in text[:4096] else "code"
    if _is_mail(text) and kind in ("", "email", "text"):
        return "email"
    if kind == "html":
        return "html" if _TAG.search(text) else "text"
    if kind == "email":
        return "text"
    if kind in ("csv", "tsv"):
        # Some programs write tabs or semicolons into files with the suffix .csv.
        return "tsv" if "\t" in text.partition("\n")[0] else "csv"
    if not kind:
        return "code" if text.startswith("#!") else _table_kind(text) or "text"
    return kind


def _without_comments(text: str) -> str:
    """Return HTML from its first tag on, because comments may precede it."""
    text = text.lstrip()
    for _ in range(MAX_COMMENTS):
        if text.startswith("<!--"):
            text = text.partition("-->")[2].lstrip()
    return text


def _is_mail(text: str) -> bool:
    found = set()
    for line in text.split("\n", 200)[:200]:
        line = line.rstrip("\r")
        if not line:
            break
        if line[0] in " \t" or line.startswith("From "):
            continue
        match = _MAIL_HEADER.match(line)
        if not match:
            return False
        found.add(match[1].lower())
    return len(found & _MAIL_HEADERS) >= _MIN_MAIL_HEADERS


def _table_kind(text: str) -> str:
    """Return the type of table if all first lines have the same number of delimiters."""
    lines = [line for line in text.split("\n", 21)[:20] if line.strip()]
    for delimiter, kind in (("\t", "tsv"), (";", "csv"), (",", "csv")):
        counts = {line.count(delimiter) for line in lines}
        if len(lines) > 2 and len(counts) == 1 and counts.pop() >= 2:
            return kind
    return ""
