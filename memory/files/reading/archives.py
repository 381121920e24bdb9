"""Zip files: the files in one, and the bounds of those that are documents."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from chat.importers.base import ImportRejectedError
from chat.importers.zip_files import check_files, is_visible, open_member, open_zip
from memory.files.reading.errors import UnreadableFileError

MAX_ARCHIVE_FILES = 10_000
# What parsers read of a document. Images in it may have any ratio.
READ_PARTS = (".xml", ".rels", ".opf", ".xhtml", ".html", ".htm", ".ncx")


@contextmanager
def open_package(path: Path) -> Iterator[ZipFile]:
    """Open the zip file at `path`. Raises `UnreadableFileError` if it cannot be unpacked."""
    with path.open("rb") as file, _zip_errors(), open_zip(file) as archive:
        if archive is None:
            raise UnreadableFileError
        yield archive


def check_package(path: Path) -> None:
    """Raise `UnreadableFileError` if a document in zip format would not unpack in bounded space."""
    with open_package(path) as archive:
        check_files([it for it in archive.infolist() if it.filename.lower().endswith(READ_PARTS)])


def expand_archive(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of each file in the zip file at `path`.

    Each path holds until the next is taken. Hidden files are left out; zip files inside are not
    expanded. Raises `UnreadableFileError`, before the first file if the archive has no bounds.
    """
    with open_package(path) as archive, tempfile.TemporaryDirectory() as folder:
        files = [info for info in archive.infolist() if is_visible(info)]
        if len(files) > MAX_ARCHIVE_FILES:
            raise ImportRejectedError("It contains too many files.", code="too_large")
        check_files(files)
        for info in files:
            unpacked = Path(folder) / "file"
            with unpacked.open("wb") as target:
                shutil.copyfileobj(open_member(archive, info.filename), target)
            yield info.filename, unpacked


@contextmanager
def _zip_errors() -> Iterator[None]:
    try:
        yield
    except ImportRejectedError as error:
        raise UnreadableFileError(error.message, code=error.code) from error
