"""How much recall finds, and how fast, on labelled conversations."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chat.importers import Refused
from memory.recall import evaluation


def budgets(text: str) -> list[int]:
    """Numbers of tokens separated by commas."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ArgumentTypeError("numbers of tokens separated by commas, such as 500,1000")
    return found


class Command(BaseCommand):
    help = (
        "Imports LoCoMo conversations into a project of their own, asks their questions, removes "
        "them again and tells how much of the evidence was found."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--budgets", type=budgets, default=[500, 1000, 2000, 4000])
        parser.add_argument("--json", action="store_true", help="the figures as JSON")

    def handle(self, *, paths: list[Path], budgets: list[int], json: bool, **_) -> None:
        self._make_tables()
        try:
            figures = evaluation.evaluate(paths, budgets, self._progress)
        except Refused as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        if not figures.questions:
            raise CommandError("There is no question with evidence in these files.")
        self._tell(figures.told(), json)

    def _make_tables(self) -> None:
        """The measure needs no Strata that has run before; one that has is not changed by it."""
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

    def _tell(self, told: dict[str, float], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(told))
        else:
            for name, value in told.items():
                self.stdout.write(f"{name:>10}  {value:g}")
