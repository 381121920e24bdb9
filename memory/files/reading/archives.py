"""Zip files: archives of files, and documents that are zip files, checked before unpacking."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from chat.importers.base import ImportRejectedError
from chat.importers.zip_files import (
    TooManyFilesError,
    check_files,
    check_unlocked,
    is_visible,
    open_member,
    open_zip,
)
from memory.files.reading.errors import UnreadableFileError, unreadable
from memory.files.reading.limits import DEFAULT

# Adding a file takes 10 ms of processor time, while the user waits.
MAX_ARCHIVE_FILES = 1_000
# Suffixes of the parts of a document that parsers read. Other parts, such as images, are not
# limited.
READ_PARTS = (".xml", ".rels", ".opf", ".xhtml", ".html", ".htm", ".ncx")
# The reasons for files that cannot be unpacked, by the code of the error.
_REASONS = {
    "encrypted": "encrypted",
    "unsupported": "compression",
    "too_large": "unpacked_too_large",
}


@contextmanager
def open_package(path: Path) -> Iterator[ZipFile]:
    """Open the zip file at `path`. Raises `UnreadableFileError` if it cannot be unpacked."""
    with path.open("rb") as file, _zip_errors(), open_zip(file) as archive:
        if archive is None:
            raise UnreadableFileError
        yield archive


def check_package(path: Path) -> None:
    """Raise `UnreadableFileError` if a document that is a zip file is encrypted, or would unpack to
    more than the limits.
    """
    with open_package(path) as archive:
        check_unlocked(archive.infolist())
        check_files([it for it in archive.infolist() if it.filename.lower().endswith(READ_PARTS)])


def expand_archive(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of each file in the zip file at `path`.

    A path is valid until the next file is requested. Hidden files are skipped, and zip files inside
    are not unpacked. Raises `UnreadableFileError`, before the first file if the archive exceeds the
    limits.
    """
    with open_package(path) as archive, tempfile.TemporaryDirectory() as folder:
        files = [info for info in archive.infolist() if is_visible(info)]
        if len(files) > MAX_ARCHIVE_FILES:
            raise TooManyFilesError
        check_files(files)
        for info in files:
            unpacked = Path(folder) / "file"
            with unpacked.open("wb") as target:
                # By its entry, because several files may have the same name.
                shutil.copyfileobj(open_member(archive, info), target)
            yield info.filename, unpacked


@contextmanager
def _zip_errors() -> Iterator[None]:
    try:
        yield
    except ImportRejectedError as error:
        too_many = isinstance(error, TooManyFilesError)
        reason = "too_many_files" if too_many else _REASONS.get(error.code, "damaged")
        raise unreadable(reason, DEFAULT) from error
