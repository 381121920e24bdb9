"""Takes a backup, while people go on."""

import hashlib
import json
from collections.abc import Callable
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile
from typing import IO, Any

from django.conf import settings
from django.utils import timezone
from django.utils.crypto import salted_hmac

from config.backup import programs
from config.backup.archive import DATABASE, FILES, FORMAT, MANIFEST, VERSION, Writer
from config.backup.places import LEFT_OUT
from config.backup.programs import Unable
from config.backup.snapshot import Snapshot, snapshot

PIECE = 8 * 2**20  # bytes of a dump that are in memory
# The broker's own schema holds messages that only wake workers. Extensions are made by name.
DUMP = (
    *("--format=custom", "--compress=gzip:1", "--no-owner", "--no-privileges", "--no-tablespaces"),
    *("--no-publications", "--no-subscriptions", "--no-security-labels"),
    *("--no-unlogged-table-data", "--exclude-schema=pgmq", "--exclude-extension=*"),
)


def take(file: IO[bytes], warn: Callable[[str], None], with_files: bool = True) -> dict[str, Any]:
    """Writes everything as it is now to `file`, and returns the manifest. Raises Unable, OSError.

    The time is that of the snapshot: what is done afterwards is not in it.
    """
    # So that a restore finds it, though nothing was ever forgotten here.
    settings.TOMBSTONES.touch(mode=0o600)
    with snapshot(with_files) as at:
        told = _manifest(at)
        archive = Writer(file)
        for name, size, source in at.files():
            archive.add(FILES + name, size, source)
            told["files"]["count"] += 1
            told["files"]["bytes"] += size
        for name in at.missing:
            warn(f"A file is missing that the database names: {name}")
        _dump(at, archive)
        told["tables"] = at.tables()
        archive.add_bytes(MANIFEST, json.dumps(told, indent=1).encode())
        archive.close()
    return told


def _manifest(at: Snapshot) -> dict[str, Any]:
    [[moment]] = at.asked("SELECT now()")
    return {
        "format": FORMAT,
        "version": VERSION,
        "strata": settings.SPECTACULAR_SETTINGS["VERSION"],
        "taken_at": timezone.localtime(moment).isoformat(),
        "server": at.reader.info.server_version,
        "extensions": at.extensions(),
        "migrations": at.migrations(),
        "secret_key": key_mark(),
        "files": {
            "from": at.place.name if at.place else LEFT_OUT,
            "count": 0,
            "bytes": 0,
            "missing": at.missing,
        },
    }


def key_mark() -> str:
    """By which the secret key is known again; it does not tell the key."""
    mark = salted_hmac("config.backup", "of the secret key", algorithm="sha256").digest()
    return hashlib.sha256(mark).hexdigest()[:16]


def _dump(at: Snapshot, archive: Writer) -> None:
    """Adds what pg_dump says, in pieces. Raises Unable."""
    server = at.reader.info.server_version // 10_000
    with TemporaryFile() as said:
        arguments = [*DUMP, f"--snapshot={at.id}"]
        with programs.start("pg_dump", arguments, server, said, stdout=PIPE, stdin=DEVNULL) as dump:
            try:
                pieces = iter(lambda: dump.stdout.read(PIECE), b"")  # type: ignore[union-attr]
                for number, piece in enumerate(pieces):
                    archive.add_bytes(f"{DATABASE}{number:05}", piece)
            except BaseException:
                # It would wait for ever for somebody to read on.
                dump.kill()
                raise
        if dump.returncode:
            raise Unable(f"pg_dump failed: {last_words(said)}")


def last_words(said: IO[bytes]) -> str:
    """The end of what a program said of its failure."""
    said.seek(0)
    return " ".join(said.read().decode(errors="replace").split())[-1_000:]
