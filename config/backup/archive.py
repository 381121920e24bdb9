"""The file of a backup: written in one go, checked as a whole before anything of it is used."""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any

FORMAT, VERSION = "strata-backup", 1
FILES, DATABASE = "files/", "database/"
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
PIECE = 2**20  # bytes
LONGEST_MANIFEST = 100 * 2**20  # bytes


class Unfit(Exception):
    """The file is no backup, not a whole one, or damaged; the text says which, for people."""


class Writer:
    """Writes to `file`, which need not be seekable."""

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=file, mode="w|", format=tarfile.PAX_FORMAT
        )
        self._sums = TemporaryFile()  # noqa: SIM115

    def add(self, name: str, size: int, source: IO[bytes]) -> None:
        """Adds the `size` bytes that `source` holds. Raises OSError when they are fewer."""
        hashing = _Hashing(source)
        self._write(name, size, hashing)
        self._sums.write(f"{hashing.told()}  {name}\n".encode())

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, len(data), io.BytesIO(data))

    def close(self) -> None:
        size = self._sums.tell()
        self._sums.seek(0)
        self._write(SUMS, size, self._sums)
        self._tar.close()
        self._sums.close()

    def _write(self, name: str, size: int, source: Any) -> None:
        told = tarfile.TarInfo(name)
        told.size, told.mode, told.mtime = size, 0o600, int(time.time())
        self._tar.addfile(told, source)


class _Hashing:
    """A file that is read, with the digest of what was."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._digest = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        return data

    def told(self) -> str:
        return self._digest.hexdigest()


def checked(path: Path) -> dict[str, Any]:
    """Reads all of a backup and returns its manifest. Raises Unfit, and OSError."""
    manifest: dict[str, Any] = {}
    whole = False
    with _reading(path), TemporaryFile() as sums:
        for name, data in members(path):
            if whole:
                raise Unfit(f"{path} goes on after its end.")
            if name == SUMS:
                _compare(path, sums, data)
                whole = True
                continue
            hashing = _Hashing(data)
            if name == MANIFEST:
                manifest = _manifest(path, hashing.read(LONGEST_MANIFEST))
            while hashing.read(PIECE):
                pass
            sums.write(f"{hashing.told()}  {name}\n".encode())
    if not whole:
        raise Unfit(f"{path} is not a whole backup: its end is missing.")
    if not manifest:
        raise Unfit(f"{path} is not a backup of Strata: it has no {MANIFEST}.")
    return manifest


def members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The files in a backup, in their order, each to be read before the next. Raises Unfit, and
    TarError.
    """
    with tarfile.open(path, mode="r|") as tar:
        for member in tar:
            data = tar.extractfile(member)
            inside = PurePosixPath(member.name)
            if data is None or inside.is_absolute() or ".." in inside.parts:
                raise Unfit(f"{path} holds {member.name!r}, which no backup does.")
            yield member.name, data


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError) as error:
        raise Unfit(f"{path} is no backup, or damaged: {error}.") from error


def _manifest(path: Path, data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
        kind, version = told["format"], told["version"]
    except (ValueError, TypeError, KeyError):
        kind = version = None
    if kind != FORMAT:
        raise Unfit(f"{path} is not a backup of Strata.")
    if version != VERSION:
        raise Unfit(f"{path} was made by a newer Strata ({told.get('strata')}).")
    return dict(told)


def _compare(path: Path, sums: IO[bytes], told: IO[bytes]) -> None:
    """Line by line, since there may be millions. Raises Unfit."""
    sums.seek(0)
    for counted in sums:
        line = told.readline()
        if line != counted:
            name = counted.decode().partition("  ")[2].strip()
            raise Unfit(f"{path} is damaged: {name} is not what it was.")
    if told.readline():
        raise Unfit(f"{path} is damaged: something in it is missing.")
