"""A backup, from the command line."""

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

from config.backup.programs import Unable
from config.backup.taking import take


class Command(BaseCommand):
    help = (
        "Writes the database and the files, as they are now, to FILE (a tar, `-` for standard "
        "output), while people go on. Keep it apart from tombstones.jsonl and secret_key."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument(
            "--without-files",
            action="store_true",
            help="leave out images and files to import, as when a bucket has copies of its own",
        )

    def handle(self, *, file: str, without_files: bool, **options: Any) -> None:
        # SIGTERM leaves through the same doors as Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with _out(file) as out:
                told = take(out, self.stderr.write, with_files=not without_files)
        except KeyboardInterrupt:
            raise CommandError("Stopped; no file was left.") from None
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}; no file was left.") from error
        except (Unable, DatabaseError) as error:
            raise CommandError(f"{error} No file was left.") from error
        if file != "-":
            rows = sum(table["rows"] for table in told["tables"].values())
            self.stdout.write(
                f"{file}: {rows:,} rows of {len(told['tables'])} tables and"
                f" {told['files']['count']:,} files, as of {told['taken_at']}"
            )


@contextmanager
def _out(name: str) -> Iterator[IO[bytes]]:
    """Where to write: beside its place until it is whole and on the disk, for us alone to read."""
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name).resolve()
    if path.exists():
        raise CommandError(f"{name} is there already, and is not written over.")
    handle, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".unfinished")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(handle)
        _place(Path(draft), path)
    finally:
        with suppress(FileNotFoundError):
            Path(draft).unlink()


def _place(draft: Path, path: Path) -> None:
    """Raises FileExistsError when somebody made `path` meanwhile."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system knows links.
        draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
