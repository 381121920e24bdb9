"""The backup file: written as a stream. It is verified completely before any of it is used."""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any

from projects.core.errors import InvalidInputError

FORMAT, VERSION = "strata-backup", 1
FILES, DATABASE = "files/", "database/"
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
BUFFER_BYTES = 2**20
MAX_MANIFEST_BYTES = 100 * 2**20


class InvalidBackupError(InvalidInputError):
    """The file is not a backup, or it is incomplete or damaged."""


class BackupWriter:
    """Writes a backup to `file`, which does not have to be seekable."""

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=file, mode="w|", format=tarfile.PAX_FORMAT
        )
        self._sums = TemporaryFile()  # noqa: SIM115

    def add(self, name: str, size: int, source: IO[bytes]) -> None:
        """Add `size` bytes from `source`. Raises `OSError` if `source` has fewer bytes."""
        reader = HashingReader(source)
        self._write(name, size, reader)
        self._sums.write(f"{reader.hexdigest()}  {name}\n".encode())

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, len(data), io.BytesIO(data))

    def close(self) -> None:
        size = self._sums.tell()
        self._sums.seek(0)
        self._write(SUMS, size, self._sums)
        self._tar.close()
        self._sums.close()

    def discard(self) -> None:
        """Release the file of an incomplete backup.

        Otherwise, the archive would write its buffer to a closed file when it is collected, and
        Python would print a traceback.
        """
        with suppress(OSError, ValueError):
            assert self._tar.fileobj
            self._tar.fileobj.close()
        self._sums.close()

    def _write(self, name: str, size: int, source: Any) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, int(time.time())
        self._tar.addfile(member, source)


class HashingReader:
    """A file that computes the checksum of the bytes that are read from it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._digest = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def verify(path: Path) -> dict[str, Any]:
    """Verify a whole backup. Return its manifest. Raises `InvalidBackupError` and `OSError`."""
    manifest: dict[str, Any] = {}
    is_complete = False
    with _tar_errors_translated(path), TemporaryFile() as sums:
        for name, data in members(path):
            if is_complete:
                raise InvalidBackupError(f"{path} continues after its end.")
            if name == SUMS:
                _compare_sums(path, sums, data)
                is_complete = True
                continue
            reader = HashingReader(data)
            if name == MANIFEST:
                manifest = _parse_manifest(path, reader.read(MAX_MANIFEST_BYTES))
            while reader.read(BUFFER_BYTES):
                pass
            sums.write(f"{reader.hexdigest()}  {name}\n".encode())
    if not is_complete:
        raise InvalidBackupError(f"{path} is not a complete backup: its end is missing.")
    if not manifest:
        raise InvalidBackupError(f"{path} is not a backup of Strata: it has no {MANIFEST}.")
    return manifest


def members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the members of a backup in order. Each must be read before the next.

    Raises `InvalidBackupError` and `TarError`.
    """
    with tarfile.open(path, mode="r|") as tar:
        for member in tar:
            data = tar.extractfile(member)
            name = PurePosixPath(member.name)
            # With `files//etc/x`, the rest after `files/` would be absolute.
            is_normal = member.name == str(name)
            if data is None or not is_normal or name.is_absolute() or ".." in name.parts:
                raise InvalidBackupError(f"{path} contains {member.name!r}, which is not allowed.")
            yield member.name, data


@contextmanager
def _tar_errors_translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError) as error:
        raise InvalidBackupError(f"{path} is not a backup, or is damaged: {error}.") from error


def _parse_manifest(path: Path, data: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
        kind, version = manifest["format"], manifest["version"]
    except (ValueError, TypeError, KeyError):
        kind = version = None
    if kind != FORMAT:
        raise InvalidBackupError(f"{path} is not a backup of Strata.")
    if version != VERSION:
        raise InvalidBackupError(f"{path} is of a newer Strata ({manifest.get('strata')}).")
    return dict(manifest)


def _compare_sums(path: Path, computed: IO[bytes], stored: IO[bytes]) -> None:
    """Compare the checksums by line: there may be millions. Raises `InvalidBackupError`."""
    computed.seek(0)
    for line in computed:
        if stored.readline() != line:
            name = line.decode().partition("  ")[2].strip()
            raise InvalidBackupError(f"{path} is damaged: {name} has changed.")
    if stored.readline():
        raise InvalidBackupError(f"{path} is damaged: a member is missing.")
