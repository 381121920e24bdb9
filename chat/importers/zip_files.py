"""The documents of an uploaded file: itself, or what a zip file as exported holds.

A zip file says what it holds before it is read: a bomb is refused by what it says, and what lies
about its size ends where it said it would.
"""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from chat.importers.base import Document, Refused

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
LARGEST = 2**30  # bytes, of all documents unpacked
# Exports shrink to a tenth or so; deflate can do 1,000 times, which only a bomb does.
LARGEST_RATIO = 200
RATIO_COUNTS_FROM = 2**20  # bytes
# Bytes of the list of files, which zipfile reads at once and keeps: some 40,000 files.
LARGEST_LIST = 4 * 2**20
# Each is looked into for its format, while somebody waits.
MOST_DOCUMENTS = 10_000
DOCUMENTS = (".json", ".jsonl", ".ndjson")

_CONVERSATIONS = re.compile(r"conversations([-_]\d+)?\.json")
# The files of a conversation bear their ids, before the names under which they were uploaded.
_FILE = re.compile(r"(file[-_][A-Za-z0-9]+)\b.*")
_ASIDES = re.compile(r"(.*/)?(memories|projects)(\.json|/[^/]+\.json)")


@dataclass
class Contents:
    """What is to be read as conversations, and what else tells something: memories, projects."""

    documents: list[Document] = field(default_factory=list)
    asides: list[Document] = field(default_factory=list)


@contextmanager
def opened(name: str, file: BinaryIO) -> Iterator[Contents]:
    """The contents of `file`, called `name`. Raises Refused, also while they are read."""
    with unzipped(file) as archive:
        if archive is not None:
            yield _contents(archive)
            return
    if name.lower().endswith(".zip"):
        raise Refused("It is called a zip file but is none.")
    yield Contents([Document(name, lambda: _rewound(file))])


@contextmanager
def unzipped(file: BinaryIO) -> Iterator[ZipFile | None]:
    """The zip file that `file` is, None when it is none. Raises Refused for a damaged one."""
    file.seek(0)
    if file.read(4) not in MAGIC:
        yield None
        return
    with _unpacking():
        archive = ZipFile(cast(BinaryIO, _Careful(file)))
    with archive:
        yield archive


def refuse_bombs(archive: ZipFile) -> None:
    """Raises Refused for what cannot be unpacked whole, or not in a bounded space."""
    _check(archive.infolist())


def member(archive: ZipFile, name: str) -> BinaryIO:
    """The file `name` of `archive`; that it is damaged raises Refused, where that is found.

    Raises KeyError when there is none.
    """
    return cast(BinaryIO, _Member(archive, archive.getinfo(name)))


def _rewound(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


@contextmanager
def _unpacking() -> Iterator[None]:
    # What zipfile raises for files that are no whole zip files; the last two for mad numbers.
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise Refused("The zip file is damaged or not complete.") from error


class _Careful:
    """A file of which only so much is read at once."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size if 0 <= size <= LARGEST_LIST else LARGEST_LIST + 1)
        if len(data) > LARGEST_LIST:
            raise Refused("It holds too many files.")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class _Member:
    """One file in a zip file; what is wrong with it while it is read refuses it, and says so."""

    def __init__(self, archive: ZipFile, info: ZipInfo) -> None:
        with _unpacking():
            self.stream = archive.open(info)

    def read(self, size: int = -1) -> bytes:
        with _unpacking():
            return self.stream.read(size)

    def readline(self, size: int = -1) -> bytes:
        with _unpacking():
            return self.stream.readline(size)


def _contents(archive: ZipFile) -> Contents:
    files = [info for info in archive.infolist() if _is_visible(info)]
    named = {info: PurePosixPath(info.filename).name.lower() for info in files}
    asides = [info for info in files if _ASIDES.fullmatch(info.filename)]
    talks = [info for info in files if _CONVERSATIONS.fullmatch(named[info])]
    talks = talks or [
        info for info in files if named[info].endswith(DOCUMENTS) and info not in asides
    ]
    if not talks:
        inner = any(name.endswith(".zip") for name in named.values())
        raise Refused(
            "It holds another zip file: unpack it first."
            if inner
            else "The zip file holds no conversations."
        )
    if len(talks) > MOST_DOCUMENTS:
        raise Refused("It holds too many files.")
    _check(talks + asides)
    images = _images(archive, files)
    documents = [replace(it, images=images) for it in _documents(archive, talks)]
    return Contents(documents, _documents(archive, asides))


def _images(archive: ZipFile, files: list[ZipInfo]) -> dict[str, Document]:
    """What may be an image, by the id that conversations know it by."""
    named = ((_FILE.fullmatch(PurePosixPath(info.filename).name), info) for info in files)
    return {
        match[1]: _document(archive, info)
        for match, info in named
        if match and not _is_locked(info) and _is_readable(info)
    }


def _is_visible(info: ZipInfo) -> bool:
    parts = PurePosixPath(info.filename).parts
    # One without a name is no folder either, and `is_dir` looks at its last letter.
    return (
        bool(info.filename)
        and not info.is_dir()
        and not any(part.startswith((".", "__MACOSX")) for part in parts)
    )


def _documents(archive: ZipFile, files: list[ZipInfo]) -> list[Document]:
    return [_document(archive, info) for info in sorted(files, key=lambda info: info.filename)]


def _document(archive: ZipFile, info: ZipInfo) -> Document:
    return Document(info.filename, lambda: cast(BinaryIO, _Member(archive, info)))


def _is_locked(info: ZipInfo) -> bool:
    return bool(info.flag_bits & 1)


def _is_readable(info: ZipInfo) -> bool:
    # Packed in other ways, it may ask for gigabytes of memory to be unpacked with.
    return info.compress_type in (ZIP_STORED, ZIP_DEFLATED)


def _check(files: list[ZipInfo]) -> None:
    """Raises Refused for what cannot be unpacked, or not in a bounded space."""
    if any(map(_is_locked, files)):
        raise Refused("The zip file is locked with a password.")
    if not all(map(_is_readable, files)):
        raise Refused("The zip file is packed in a way that is not read here: use deflate.")
    if sum(info.file_size for info in files) > LARGEST:
        raise Refused(f"Unpacked it would be larger than {LARGEST // 2**20} MB.")
    for info in files:
        if info.file_size > max(RATIO_COUNTS_FROM, LARGEST_RATIO * info.compress_size):
            raise Refused(f"{info.filename} would unpack to more than any export does.")
