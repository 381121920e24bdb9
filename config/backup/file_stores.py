"""Where files lie, the data folder or a bucket, as backups read them and restores put them back."""

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

from chat.files import hold
from config.storage import failing_as_oserror

# Of a bucket, the part that is Strata's.
PREFIXES = ("attachments/", "imports/")
# What a manifest says where whoever took the backup keeps files otherwise.
LEFT_OUT = "left out"


class Folder:
    """The data folder. What is held stays whatever becomes of it, by a link into `held`."""

    name = "folder"
    # Removals go on once everything is held.
    reads_while_locked = False

    def __init__(self, held: Path) -> None:
        self.held = held

    def hold(self, names: Iterable[str]) -> list[str]:
        """Returns those that are not there."""
        return [one for one in names if not hold(self.held, one)]

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[int, IO[bytes]] | None]:
        """How many bytes it has, and where to read them; None if it is not there."""
        path = self.held / name
        if not path.exists():
            yield None
            return
        with path.open("rb") as file:
            yield path.stat().st_size, file


class Bucket:
    """A bucket knows no links: whoever removes something waits until all of it is read."""

    name = "bucket"
    reads_while_locked = True

    def hold(self, names: Iterable[str]) -> list[str]:
        return []

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[int, IO[bytes]] | None]:
        with failing_as_oserror():
            try:
                file: Any = default_storage.open(name)
            except FileNotFoundError:
                yield None
                return
        with file:
            with failing_as_oserror():
                # From now on it lies on the disk here, and cannot break off in the archive.
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
            yield size, file


Place = Folder | Bucket


def place(held: Path) -> Place:
    """That which the settings name; links for the time of a backup go into `held`."""
    return Bucket() if settings.S3_BUCKET else Folder(held)


def put(name: str, data: IO[bytes]) -> None:
    """Puts a file where the settings have it lie."""
    if settings.S3_BUCKET:
        _put_into_bucket(name, data)
    else:
        _put_into_folder(Path(settings.MEDIA_ROOT) / name, data)


def _put_into_bucket(name: str, data: IO[bytes]) -> None:
    # What is sent may have to be sent again, which a tar that is read in one go does not know.
    with TemporaryFile() as draft, failing_as_oserror():
        shutil.copyfileobj(data, draft)
        draft.seek(0)
        default_storage.save(name, File(draft))


def _put_into_folder(path: Path, data: IO[bytes]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.restored")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(data, file)
    draft.replace(path)


def names() -> Iterator[str]:
    """Of all files that are there."""
    if not settings.S3_BUCKET:
        root = Path(settings.MEDIA_ROOT)
        yield from (str(one.relative_to(root)) for one in sorted(root.rglob("*")) if one.is_file())
        return
    storage: Any = default_storage
    with failing_as_oserror():
        for prefix in PREFIXES:
            yield from (one.key for one in storage.bucket.objects.filter(Prefix=prefix))


def remove(name: str) -> None:
    with suppress(FileNotFoundError), failing_as_oserror():
        default_storage.delete(name)
