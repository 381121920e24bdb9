"""Management command `backup`: write the database and the files to a file."""

import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError
from psycopg import Error as DatabaseError

from config.backup.create import create_backup
from config.backup.pg_tools import BackupError


class Command(BaseCommand):
    help = (
        "Write the database and the files to FILE (a tar, `-` for standard output), while Strata "
        "is in use. Keep it apart from tombstones.jsonl and secret_key."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument(
            "--without-files",
            action="store_true",
            help="leave out stored files, for example if the bucket has its own backups",
        )

    def handle(self, *, file: str, without_files: bool, **options: Any) -> None:
        # SIGTERM stops the command like Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with open_new_file(file) as output:
                manifest = create_backup(output, self.stderr.write, with_files=not without_files)
        except KeyboardInterrupt:
            raise CommandError("Stopped; no file was left.") from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}; no file was left.") from error
        except (BackupError, DatabaseError) as error:
            raise CommandError(f"{error} No file was left.") from error
        if file != "-":
            rows = sum(table["rows"] for table in manifest["tables"].values())
            self.stdout.write(
                f"{file}: {rows:,} rows of {len(manifest['tables'])} tables and"
                f" {manifest['files']['count']:,} files, as of {manifest['taken_at']}"
            )


@contextmanager
def open_new_file(name: str) -> Iterator[IO[bytes]]:
    """Open a file that only its owner can read. It gets its name when it is complete and synced."""
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name).resolve()
    if path.exists():
        raise CommandError(f"{name} exists already and is not overwritten.")
    handle, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".unfinished")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        move_without_overwriting(Path(draft), path)
    finally:
        with suppress(FileNotFoundError):
            Path(draft).unlink()


def move_without_overwriting(draft: Path, path: Path) -> None:
    """Move a file and sync its folder. Raises `FileExistsError`."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no hard links.
        draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
