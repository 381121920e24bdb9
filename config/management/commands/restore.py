"""Management command `restore`: replace the database and the files by a backup."""

import fcntl
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError as DjangoDatabaseError
from psycopg import Error as DatabaseError

from config.backup import restore_marker
from config.backup.restore import RestoreOptions, restore
from config.management.commands.up import data_dir_lock
from projects.core.errors import DomainError


class Command(BaseCommand):
    help = (
        "Restore the backup FILE, and repeat the forget requests that were made since. Strata must "
        "not run meanwhile."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--tombstones",
            type=Path,
            metavar="FILE",
            action="append",
            default=[],
            help="a tombstone file to use in addition to tombstones.jsonl in the data folder",
        )
        parser.add_argument(
            "--without-tombstones",
            action="store_true",
            help="bring back what was forgotten since the backup",
        )
        parser.add_argument(
            "--replace", action="store_true", help="delete the projects that exist here"
        )
        parser.add_argument(
            "--revoke-tokens",
            action="store_true",
            help="revoke all API tokens, because some were revoked since the backup",
        )

    def handle(self, *, file: Path, tombstones: list[Path], **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if options["without_tombstones"] and tombstones:
            raise CommandError("Use either --tombstones or --without-tombstones.")
        restore_options = RestoreOptions(
            file,
            tombstones,
            options["without_tombstones"],
            options["replace"],
            options["revoke_tokens"],
        )
        try:
            # The lock also prevents `up` from starting during the restore.
            with data_dir_lock(settings.DATA_DIR), restore_marker.process_lock(fcntl.LOCK_EX):
                restore(restore_options, self.stdout.write)
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. Run it again, unless nothing had been restored yet."
            ) from None
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror or error}") from error
        except (DomainError, DatabaseError, DjangoDatabaseError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Restored.")
