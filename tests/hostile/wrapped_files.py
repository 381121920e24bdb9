"""Archives for upload, locked documents and files with a wrong suffix: (name, bytes) of each."""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.hostile import files, zips
from tests.hostile.zips import DEFLATED, Member
from tests.memory.files import samples

DATA = Path(__file__).parents[1] / "memory" / "files" / "data"
SYMBOLIC_LINK, DEVICE, FIFO = (kind << 16 for kind in (0o120777, 0o020666, 0o010666))
BZIP2, LZMA, ZSTANDARD, AES = 12, 14, 93, 99
TEXT = b"# Rules\n\nBook early.\n"


def all_of_them() -> Iterator[tuple[str, bytes]]:
    """Yield all files."""
    yield from light()
    yield from heavy()


def light() -> Iterator[tuple[str, bytes]]:
    """Yield those that are made and read fast."""
    for make in (_names, _links, _locked, _methods, _suffixes, _two_kinds):
        yield from make()


def heavy() -> Iterator[tuple[str, bytes]]:
    """Yield those that are large."""
    yield from _bombs()


def locked(data: bytes, *parts: str) -> bytes:
    """The zip file with parts that need a password."""
    return _rewritten(data, {part: {"flags": 1} for part in parts}, {})


def packed_by(method: int, packed: bytes = b"\xff" * 99) -> bytes:
    """A book whose first part is compressed by this method."""
    says = {"method": method, "size": 20}
    members = [Member(b"mimetype", b"", says=says), Member(b"META-INF/container.xml", b"<a/>")]
    return zips.zipped(*members, packed={0: packed})


def _names() -> Iterator[tuple[str, bytes]]:
    for label, name in (
        ("upwards", b"../../../../tmp/strata-traversal.md"),
        ("upwards inside", b"a/../../b.md"),
        ("absolute", b"/etc/cron.d/strata.md"),
        ("of Windows", b"C:\\Windows\\strata.md"),
        ("backslashes", b"..\\..\\strata.md"),
        ("with a share", b"\\\\host\\share\\a.md"),
        ("only dots", b".."),
        ("of spaces", b"   "),
        ("with line feeds", b"a\nb\r.md"),
        ("from right to left", "a\u202efdp.md".encode()),
        ("not UTF-8", b"\xff\xfe.md"),
        ("long", b"a/" * 30_000 + b"b.md"),
        ("of a device", b"CON.md"),
        ("with an address", b"http://127.0.0.1/a.md"),
        ("encoded", b"%2e%2e%2fa.md"),
        ("with quotes", b'"><script>alert(1)</script>.md'),
    ):
        yield f"name {label}.zip", zips.zipped(Member(name, TEXT), Member(b"other.md", TEXT))
    yield "same names.zip", zips.zipped(*(Member(b"a.md", TEXT + b"%d" % n) for n in range(1_000)))
    folders = (Member(b"a/" * n, b"") for n in range(1, 300))
    yield "folders.zip", zips.zipped(*folders, Member(b"a.md", TEXT))
    yield "other name inside.zip", zips.zipped(Member(b"a.md", TEXT, local_name=b"b.md"))


def _links() -> Iterator[tuple[str, bytes]]:
    for label, kind in (("link", SYMBOLIC_LINK), ("device", DEVICE), ("pipe", FIFO)):
        for target in (b"/etc/passwd", b"../../../etc/passwd"):
            member = Member(b"a.md", target, says={"attributes": kind})
            yield f"{label} to {len(target)}.zip", zips.zipped(member, Member(b"b.md", TEXT))
    to_folder = Member(b"a", b"/tmp", says={"attributes": SYMBOLIC_LINK})
    yield "link to a folder.zip", zips.zipped(to_folder, Member(b"a/b.md", TEXT))
    for kind, part in (("docx", "word/document.xml"), ("epub", "OPS/second.xhtml")):
        data = files.samples_of_each_kind()[kind]
        yield (
            f"link inside.{kind}",
            _rewritten(data, {part: {"attributes": SYMBOLIC_LINK}}, {part: b"/etc/passwd"}),
        )


def _locked() -> Iterator[tuple[str, bytes]]:
    """Yield documents that need a password."""
    for path in DATA.glob("*password*.pdf"):
        yield f"{path.stem}.pdf", path.read_bytes()
    key = {"flags": 1}
    yield "locked.zip", zips.zipped(Member(b"a.md", TEXT, DEFLATED, key))
    yield "half locked.zip", zips.zipped(Member(b"a.md", TEXT), Member(b"b.md", TEXT, says=key))
    strong = {"flags": 0x41, "method": AES}
    yield "strongly locked.zip", zips.zipped(Member(b"a.md", TEXT, DEFLATED, strong))
    for kind in ("docx", "xlsx", "pptx", "epub"):
        data = files.samples_of_each_kind()[kind]
        names = list(_parts(data))
        yield f"locked.{kind}", locked(data, *names)
        yield f"locked first part.{kind}", locked(data, names[0])
        yield f"locked last part.{kind}", locked(data, names[-1])
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(9_000)
    for kind in ("doc", "xls", "ppt", "msg"):
        yield f"old.{kind}", magic + b"WordDocument" * 99
    package = "EncryptedPackage".encode("utf-16-le")
    for kind in ("docx", "xlsx", "pptx"):
        yield f"encrypted with a password.{kind}", magic + bytes(400_000) + package + bytes(999)


def _methods() -> Iterator[tuple[str, bytes]]:
    """Yield packages whose parts are compressed in another way, or not as they state."""
    huge = struct.pack("<BBHBI", 9, 4, 5, 0x5D, 0xFFFFFFFF) + b"\x00" * 99
    for label, method, packed in (
        ("LZMA", LZMA, huge),
        ("LZMA of noise", LZMA, b"\xff" * 99),
        ("bzip2", BZIP2, b"BZh9" + b"\xff" * 99),
        ("Zstandard", ZSTANDARD, b"\x28\xb5\x2f\xfd" + b"\xff" * 99),
        ("deflate of noise", DEFLATED, b"\xff" * 99),
        ("no data", DEFLATED, b""),
    ):
        says = {"method": method, "size": 20}
        yield f"type in {label}.epub", packed_by(method, packed)
        parts = [
            Member(b"[Content_Types].xml", b"", says=says),
            Member(b"word/document.xml", b"<a/>"),
        ]
        yield f"types in {label}.docx", zips.zipped(*parts, packed={0: packed})
        yield (
            f"text in {label}.zip",
            zips.zipped(Member(b"a.md", b"", says=says), packed={0: packed}),
        )


def _suffixes() -> Iterator[tuple[str, bytes]]:
    """Yield each kind under the name of another, and what no parser reads under the name of one."""
    kinds = files.samples_of_each_kind() | {"md": TEXT, "csv": b"a,b\n1,2\n3,4\n", "zip": b""}
    kinds["zip"] = samples.zipped({"a.md": TEXT})
    suffixes = list(kinds)
    for number, (kind, data) in enumerate(kinds.items()):
        for step in (1, 3):
            wrong = suffixes[(number + step) % len(suffixes)]
            yield f"{kind} under the name of.{wrong}", data
    for label, data in (
        ("program", b"\x7fELF\x02\x01\x01" + bytes(9_000)),
        ("program of Windows", b"MZ\x90\x00" + bytes(9_000)),
        ("picture", b"\x89PNG\r\n\x1a\n" + bytes(9_000)),
        ("film", b"\x00\x00\x00\x18ftypmp42" + bytes(9_000)),
        ("text in gzip", gzip.compress(TEXT)),
        ("gzip bomb", gzip.compress(bytes(50 * files.MEGABYTE))),
        ("zlib", zlib.compress(TEXT)),
        ("RAR", b"Rar!\x1a\x07\x01\x00" + bytes(9_000)),
        ("7z", b"7z\xbc\xaf\x27\x1c" + bytes(9_000)),
        ("tar", b"a.md" + bytes(253) + b"ustar" + bytes(9_000)),
        ("RTF", rb"{\rtf1 {\object\objdata 0105}}"),
        ("PostScript", b"%!PS\n{ } loop\n"),
        ("font", b"\x00\x01\x00\x00" + bytes(9_000)),
        ("database", b"SQLite format 3\x00" + bytes(9_000)),
        ("zeros", bytes(90_000)),
    ):
        for suffix in ("pdf", "docx"):
            yield f"{label}.{suffix}", data


def _two_kinds() -> Iterator[tuple[str, bytes]]:
    """Yield files that are valid as two kinds."""
    page, package = samples.pdf("text"), samples.word()
    yield "PDF and Word.pdf", page + package
    yield "PDF in front of a page.html", page + b"<html><script>alert(1)</script>text"
    yield "page and PDF.html", b"<html><body>text</body></html>" + page
    yield "picture and zip.png", b"GIF89a" + samples.zipped({"a.md": TEXT})
    yield (
        "Word and book.docx",
        files.changed(package, lambda name, old: old, mimetype=b"application/epub+zip"),
    )
    yield (
        "Word and workbook.docx",
        files.changed(package, lambda name, old: old, **{"xl/workbook.xml": b"<workbook/>"}),
    )
    yield "two documents.docx", package + samples.word()
    yield "zip behind a script.sh", b"#!/bin/sh\nrm -rf /\nexit\n" + samples.zipped({"a.md": TEXT})
    yield "mail and page.eml", samples.MAIL.encode() + b"<html>text</html>"


def _bombs() -> Iterator[tuple[str, bytes]]:
    ten = zips.endless(b" " * files.MEGABYTE, 40)
    says = {"size": 40 * files.MEGABYTE, "packed": len(ten)}
    member = Member(b"a.md", b"", DEFLATED, dict(says))
    yield "bomb.zip", zips.zipped(member, packed={0: ten})
    overlapping = [Member(b"%d.md" % n, b"", DEFLATED, dict(says), at=0) for n in range(1, 500)]
    yield "overlapping.zip", zips.zipped(member, *overlapping, packed={0: ten})
    inner = samples.zipped({f"{n}.md": b"a" * 900_000 for n in range(16)})
    for _ in range(5):
        inner = samples.zipped({f"{n}.zip": inner for n in range(16)})
    yield "sixteen of sixteen.zip", inner
    yield "10000 files.zip", samples.zipped({f"{n}.md": TEXT for n in range(10_000)})
    yield "20000 files.zip", samples.zipped({f"{n}.md": TEXT for n in range(20_000)})
    yield "60000 files.zip", samples.zipped({f"{n:05d}.md": b"" for n in range(60_000)})
    yield (
        "megabytes of text.zip",
        samples.zipped({f"{n}.md": (b"%d words " % n) * 5_000_000 for n in range(3)}),
    )


def _parts(data: bytes) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    files.changed(data, lambda name, old: contents.setdefault(name, old))
    return contents


def _rewritten(data: bytes, says: dict[str, dict[str, int]], contents: dict[str, bytes]) -> bytes:
    """The zip file with other headers and contents of some parts."""
    return zips.zipped(
        *(
            Member(name.encode(), contents.get(name, old), DEFLATED, dict(says.get(name, {})))
            for name, old in _parts(data).items()
        )
    )
