"""The documents of an upload: the file itself, or the files in a zip file.

The directory of a zip file is checked before anything is unpacked. A file that is larger than its
directory entry states is cut at that size, and its checksum then fails.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from django.utils.translation import gettext_noop as _

from chat.importers.base import ImportedFile, ImportRejectedError

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
# The maximum size of all documents together, unpacked.
MAX_UNPACKED_BYTES = 2**30
# The maximum compression ratio. Exports reach about 10, zip bombs up to 1,000.
MAX_RATIO = 200
# Files up to this size may have any ratio.
RATIO_MIN_BYTES = 2**20
# The maximum size of the directory, which zipfile reads into memory. It is enough for 40,000 files.
MAX_DIRECTORY_BYTES = 4 * 2**20
# The maximum number of documents, because their formats are recognised while the user waits.
MAX_DOCUMENTS = 10_000
DOCUMENTS = (".json", ".jsonl", ".ndjson")

_CONVERSATIONS = re.compile(r"conversations([-_]\d+)?\.json")
# Files in an export have names that begin with an id, followed by the name of the uploaded file.
_FILE = re.compile(r"(file[-_][A-Za-z0-9]+)\b.*")
_MEMORIES = re.compile(r"^(.*/)?((memories|projects)(\.json|/[^/]+\.json)|users\.json)")


class TooManyFilesError(ImportRejectedError):
    """The zip file contains more files than an import accepts."""

    default_code = "too_large"
    default_message = "It contains too many files."


@dataclass
class UploadContents:
    """The documents with conversations, and those with users, memories and projects."""

    documents: list[ImportedFile] = field(default_factory=list)
    memories: list[ImportedFile] = field(default_factory=list)


@contextmanager
def open_documents(name: str, file: BinaryIO) -> Iterator[UploadContents]:
    """Open the documents of a file. Opening and reading a document can raise
    `ImportRejectedError`.
    """
    with open_zip(file) as archive:
        if archive is not None:
            yield _contents(archive)
            return
    if name.lower().endswith(".zip"):
        raise ImportRejectedError(_("Its name ends in .zip, but it is not a zip file."))
    yield UploadContents([ImportedFile(name, lambda: _rewound(file))])


@contextmanager
def open_zip(file: BinaryIO) -> Iterator[ZipFile | None]:
    """Open a zip file. Yields None for other files. Raises `ImportRejectedError` if damaged."""
    file.seek(0)
    if file.read(4) not in MAGIC:
        yield None
        return
    bounded = _BoundedFile(file)
    with _zip_errors():
        archive = ZipFile(cast(BinaryIO, bounded))
    bounded.is_open = True
    with archive:
        yield archive


def open_member(archive: ZipFile, name: str | ZipInfo) -> BinaryIO:
    """Open the file `name` of `archive`. Raises `KeyError` if it does not exist.

    Opening and reading can raise `ImportRejectedError`.
    """
    info = name if isinstance(name, ZipInfo) else archive.getinfo(name)
    return cast(BinaryIO, _Member(archive, info))


def _rewound(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


@contextmanager
def _zip_errors() -> Iterator[None]:
    # zipfile raises these errors for damaged files, such as ValueError for an invalid offset.
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise ImportRejectedError(
            _("The zip file is damaged or not complete."), code="damaged"
        ) from error


class _BoundedFile:
    """A zip file. Until it `is_open`, each read is limited in size: zipfile reads the directory in
    one.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.is_open = False

    def read(self, size: int = -1) -> bytes:
        if self.is_open:
            return self.file.read(size)
        data = self.file.read(size if 0 <= size <= MAX_DIRECTORY_BYTES else MAX_DIRECTORY_BYTES + 1)
        if len(data) > MAX_DIRECTORY_BYTES:
            raise TooManyFilesError
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class _Member:
    """A file in a zip file. A failed read raises `ImportRejectedError`."""

    def __init__(self, archive: ZipFile, info: ZipInfo) -> None:
        _check_format(info)
        with _zip_errors():
            self.stream = archive.open(info)

    def read(self, size: int = -1) -> bytes:
        with _zip_errors():
            return self.stream.read(size)

    def readline(self, size: int = -1) -> bytes:
        with _zip_errors():
            return self.stream.readline(size)


def _contents(archive: ZipFile) -> UploadContents:
    files = [info for info in archive.infolist() if is_visible(info)]
    names = {info: PurePosixPath(info.filename).name.lower() for info in files}
    memories = {info for info in files if _MEMORIES.fullmatch(info.filename)}
    conversations = [info for info in files if _CONVERSATIONS.fullmatch(names[info])]
    conversations = conversations or [
        info for info in files if names[info].endswith(DOCUMENTS) and info not in memories
    ]
    if not conversations:
        inner = any(name.endswith(".zip") for name in names.values())
        raise ImportRejectedError(
            _("It contains another zip file: unpack it first.")
            if inner
            else _("The zip file contains no conversations.")
        )
    if len(conversations) > MAX_DOCUMENTS:
        raise TooManyFilesError
    check_files([*conversations, *memories])
    images = _images(archive, files)
    related = _documents(archive, memories)
    documents = [
        replace(it, images=images, related=related) for it in _documents(archive, conversations)
    ]
    return UploadContents(documents, related)


def _images(archive: ZipFile, files: list[ZipInfo]) -> dict[str, ImportedFile]:
    """Return the files that may be images, by the id with which conversations refer to them."""
    named = ((_FILE.fullmatch(PurePosixPath(info.filename).name), info) for info in files)
    return {
        match[1]: _document(archive, info)
        for match, info in named
        if match and not _is_locked(info) and _is_readable(info)
    }


def is_visible(info: ZipInfo) -> bool:
    """Return whether `info` is a user's file, not a hidden file that an operating system added."""
    parts = PurePosixPath(info.filename).parts
    # Check the name first: `is_dir` reads its last character, and fails on an empty name.
    return (
        bool(info.filename)
        and not info.is_dir()
        and not any(part.startswith((".", "__MACOSX")) for part in parts)
    )


def _documents(archive: ZipFile, files: Iterable[ZipInfo]) -> list[ImportedFile]:
    return [_document(archive, info) for info in sorted(files, key=lambda info: info.filename)]


def _document(archive: ZipFile, info: ZipInfo) -> ImportedFile:
    return ImportedFile(info.filename, lambda: cast(BinaryIO, _Member(archive, info)))


def _is_locked(info: ZipInfo) -> bool:
    return bool(info.flag_bits & 1)


def _is_readable(info: ZipInfo) -> bool:
    # Other compression methods may need gigabytes of memory.
    return info.compress_type in (ZIP_STORED, ZIP_DEFLATED)


def check_unlocked(files: list[ZipInfo]) -> None:
    """Raise `ImportRejectedError` if a file is encrypted."""
    if any(map(_is_locked, files)):
        raise ImportRejectedError(_("The zip file is encrypted."), code="encrypted")


def _check_format(*files: ZipInfo) -> None:
    """Raise `ImportRejectedError` if a file is encrypted, or neither stored nor deflated."""
    check_unlocked(list(files))
    if not all(map(_is_readable, files)):
        raise ImportRejectedError(
            _("The compression method of the zip file is not supported: use deflate."),
            code="unsupported",
        )


def check_files(files: list[ZipInfo]) -> None:
    """Raise `ImportRejectedError` if a file might unpack to more than the limits allow."""
    _check_format(*files)
    if sum(info.file_size for info in files) > MAX_UNPACKED_BYTES:
        raise ImportRejectedError(
            _("Unpacked it would be larger than %s MB.") % (MAX_UNPACKED_BYTES // 2**20),
            code="too_large",
        )
    for info in files:
        if info.file_size > max(RATIO_MIN_BYTES, MAX_RATIO * info.compress_size):
            raise ImportRejectedError(
                f"{info.filename}: "
                + _("It would unpack to more than %s times its size.") % MAX_RATIO,
                code="too_large",
            )
