"""A backup brought back, from the command line."""

import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError as DjangoDatabaseError
from psycopg import Error as DatabaseError

from config.backup.archive import Unfit
from config.backup.programs import Unable
from config.backup.restoring import Wish, restore
from config.management.commands.up import only_one
from memory.forgetting.graves import Damaged


class Command(BaseCommand):
    help = (
        "Brings back what FILE, a backup, holds, and forgets once more what was forgotten since. "
        "Strata must not run meanwhile."
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
            help="what was forgotten, beside tombstones.jsonl in the data folder",
        )
        parser.add_argument(
            "--without-tombstones",
            action="store_true",
            help="bring back what was forgotten since the backup, too",
        )
        parser.add_argument(
            "--replace", action="store_true", help="even if there are projects here: they go"
        )

    def handle(self, *, file: Path, tombstones: list[Path], **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        wish = Wish(file, tombstones, options["without_tombstones"], options["replace"])
        if wish.without_tombstones and tombstones:
            raise CommandError("Either --tombstones or --without-tombstones.")
        try:
            # Neither does anybody start it meanwhile.
            with only_one(settings.DATA_DIR):
                restore(wish, self.stdout.write)
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run it again, unless nothing was restored yet.") from None
        except OSError as error:
            raise CommandError(f"{error.filename or file}: {error.strerror or error}") from error
        except (Unable, Unfit, Damaged, DatabaseError, DjangoDatabaseError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Restored.")
