"""Create a backup while Strata is in use."""

import hashlib
import json
from collections.abc import Callable
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile
from typing import IO, Any

from django.conf import settings
from django.utils import timezone
from django.utils.crypto import salted_hmac

from config import __version__
from config.backup import pg_tools
from config.backup.archive import DATABASE, FILES, FORMAT, MANIFEST, VERSION, BackupWriter
from config.backup.file_stores import LEFT_OUT
from config.backup.pg_tools import BackupError
from config.backup.snapshot import DatabaseSnapshot, take_snapshot

# The number of bytes of a dump that are in memory at a time.
CHUNK_BYTES = 8 * 2**20
# The broker's schema is left out, because its messages only wake workers. Extensions are named.
DUMP_OPTIONS = (
    *("--format=custom", "--compress=gzip:1", "--no-owner", "--no-privileges", "--no-tablespaces"),
    *("--no-publications", "--no-subscriptions", "--no-security-labels"),
    *("--no-unlogged-table-data", "--exclude-schema=pgmq", "--exclude-extension=*"),
)


def create_backup(
    file: IO[bytes], warn: Callable[[str], None], with_files: bool = True
) -> dict[str, Any]:
    """Write a backup of the current state to `file`, and return its manifest.

    Changes during the backup are not included. Raises `BackupError` and `OSError`.
    """
    # A restore requires this file, even if nothing has ever been forgotten.
    settings.TOMBSTONES.touch(mode=0o600)
    with take_snapshot(with_files) as snapshot:
        manifest = _manifest(snapshot)
        writer = BackupWriter(file)
        try:
            _write(snapshot, writer, manifest)
        except BaseException:
            # Also after Ctrl-C.
            writer.discard()
            raise
        for name in snapshot.missing:
            warn(f"The database refers to a file that is missing: {name}")
    return manifest


def _write(snapshot: DatabaseSnapshot, writer: BackupWriter, manifest: dict[str, Any]) -> None:
    for name, size, source in snapshot.files():
        writer.add(FILES + name, size, source)
        manifest["files"]["count"] += 1
        manifest["files"]["bytes"] += size
    _dump_database(snapshot, writer)
    manifest["tables"] = snapshot.tables()
    writer.add_bytes(MANIFEST, json.dumps(manifest, indent=1).encode())
    writer.close()


def _manifest(snapshot: DatabaseSnapshot) -> dict[str, Any]:
    [[moment]] = snapshot.fetch("SELECT now()")
    return {
        "format": FORMAT,
        "version": VERSION,
        "strata": __version__,
        "taken_at": timezone.localtime(moment).isoformat(),
        "server": snapshot.reader.info.server_version,
        "extensions": snapshot.extensions(),
        "migrations": snapshot.migrations(),
        "secret_key": secret_key_fingerprint(),
        "files": {
            "from": snapshot.store.name if snapshot.store else LEFT_OUT,
            "count": 0,
            "bytes": 0,
            "missing": snapshot.missing,
        },
    }


def secret_key_fingerprint() -> str:
    """Return a fingerprint of the secret key. It does not reveal the key."""
    mac = salted_hmac("config.backup", "of the secret key", algorithm="sha256").digest()
    return hashlib.sha256(mac).hexdigest()[:16]


def _dump_database(snapshot: DatabaseSnapshot, writer: BackupWriter) -> None:
    """Add the output of pg_dump in chunks. Raises `BackupError`."""
    server = snapshot.reader.info.server_version // 10_000
    arguments = [*DUMP_OPTIONS, f"--snapshot={snapshot.id}"]
    with (
        TemporaryFile() as stderr,
        pg_tools.start("pg_dump", arguments, server, stderr, stdout=PIPE, stdin=DEVNULL) as dump,
    ):
        try:
            chunks = iter(lambda: dump.stdout.read(CHUNK_BYTES), b"")  # type: ignore[union-attr]
            for number, chunk in enumerate(chunks):
                writer.add_bytes(f"{DATABASE}{number:05}", chunk)
        except BaseException:
            # Otherwise pg_dump would wait forever, because nobody reads its output.
            dump.kill()
            raise
        if dump.wait():
            raise BackupError(f"pg_dump failed: {pg_tools.error_output(stderr)}")
