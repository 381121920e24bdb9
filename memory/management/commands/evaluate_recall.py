"""Management command: measure quality and speed of recall on labelled conversations."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chat.importers import ImportRejectedError
from memory.recall import evaluation


def budgets(text: str) -> list[int]:
    """Parse numbers of tokens separated by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ArgumentTypeError("numbers of tokens separated by commas, such as 500,1000")
    return numbers


class Command(BaseCommand):
    help = (
        "Imports LoCoMo conversations into a project of their own, searches for the answers to "
        "their questions, removes them again and prints the share of the evidence that was found."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--budgets", type=budgets, default=[500, 1000, 2000, 4000])
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="the figures as JSON"
        )

    def handle(self, *, paths: list[Path], budgets: list[int], as_json: bool, **_) -> None:
        self._make_tables()
        try:
            result = evaluation.evaluate(paths, budgets, self._progress)
        except ImportRejectedError as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        if not result.questions:
            raise CommandError("There is no question with evidence in these files.")
        summary = result.summary()
        if as_json:
            self.stdout.write(json.dumps(summary))
            return
        for name, value in summary.items():
            self.stdout.write(f"{name:>10}  {value:g}")

    def _make_tables(self) -> None:
        """Create the tables of an empty database; never change those of an existing one."""
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if missing and executor.loader.applied_migrations:
            raise CommandError(
                f"{len(missing)} migrations are not applied yet; run: manage.py migrate"
            )
        if missing:
            call_command("migrate", verbosity=0, interactive=False)

    def _progress(self, line: str) -> None:
        if self.stderr.isatty():
            self.stderr.write(line, style_func=str)
