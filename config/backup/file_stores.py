"""Reads and writes stored files for backup and restore, in the data folder or in a bucket."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from chat.attachments.file_removal import link_for_backup

# The folders of a bucket that belong to Strata.
PREFIXES = ("attachments/", "files/", "imports/")
# The value in the manifest of a backup without files.
LEFT_OUT = "left out"


@contextmanager
def failing_as_oserror() -> Iterator[None]:
    """Convert errors of the bucket to `OSError`, like errors of a folder."""
    if not settings.S3_BUCKET:
        yield
        return
    # Packages of the extra `s3`.
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OSError(f"The bucket: {error}") from error


class FolderStore:
    """The data folder. Files are hard-linked into `folder`, so that they survive their deletion."""

    name = "folder"
    # False: files may be deleted again as soon as the links exist.
    is_read_under_lock = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hold(self, names: Iterable[str]) -> list[str]:
        """Link the files. Return the names of files that do not exist."""
        return [name for name in names if not link_for_backup(self.folder, name)]

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[int, IO[bytes]] | None]:
        """Open a file. Yields its size and content, or None if it does not exist."""
        path = self.folder / name
        if not path.exists():
            yield None
            return
        with path.open("rb") as file:
            yield path.stat().st_size, file


class BucketStore:
    """An S3 bucket. It has no links, so deletions wait until all files have been read."""

    name = "bucket"
    is_read_under_lock = True

    def hold(self, names: Iterable[str]) -> list[str]:
        return []

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[int, IO[bytes]] | None]:
        with failing_as_oserror():
            try:
                file: Any = default_storage.open(name)
            except FileNotFoundError:
                yield None
                return
        with file:
            with failing_as_oserror():
                # Download the file first, so that the connection cannot fail within a tar member.
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
            yield size, file


FileStore = FolderStore | BucketStore


def file_store(folder: Path) -> FileStore:
    """Return the configured store. During a backup, `folder` contains the links to its files."""
    return BucketStore() if settings.S3_BUCKET else FolderStore(folder)


def save(name: str, data: IO[bytes]) -> None:
    """Save a file from a backup in the configured store."""
    if settings.S3_BUCKET:
        # Copied, because an upload may be repeated and the tar stream cannot be rewound.
        with TemporaryFile() as copy, failing_as_oserror():
            shutil.copyfileobj(data, copy)
            copy.seek(0)
            default_storage.save(name, File(copy))
        return
    path = Path(settings.MEDIA_ROOT) / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.restored")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(data, file)
    except BaseException:
        draft.unlink()
        raise
    draft.replace(path)


def exists(name: str) -> bool:
    with failing_as_oserror():
        return default_storage.exists(name)


def all_names() -> Iterator[str]:
    """Yield the names of all files in the configured store."""
    if not settings.S3_BUCKET:
        root = Path(settings.MEDIA_ROOT)
        paths = sorted(root.rglob("*"))
        yield from (str(path.relative_to(root)) for path in paths if path.is_file())
        return
    storage: Any = default_storage
    with failing_as_oserror():
        for prefix in PREFIXES:
            yield from (entry.key for entry in storage.bucket.objects.filter(Prefix=prefix))


def remove(name: str) -> None:
    with suppress(FileNotFoundError), failing_as_oserror():
        default_storage.delete(name)
