"""Management command: measure the quality and speed of recall on labelled conversations."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from chat.importers import ImportRejectedError
from memory.recall.evaluation import labelled, measures
from memory.recall.ranking import WEIGHTS


def budgets(text: str) -> list[int]:
    """Parse numbers of tokens separated by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ArgumentTypeError("use numbers of tokens separated by commas, such as 500,1000")
    return numbers


class Command(BaseCommand):
    help = (
        "Measure recall on labelled conversations (recall sets and LoCoMo files, gzipped or not). "
        "They are imported into projects of their own, which are removed again. For each set, the "
        "share of the evidence that was found is printed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--budgets", type=budgets, default=[500, 1000, 2000, 4000])
        parser.add_argument(
            "--floor", action="store_true", help="also measure a ranker without fitted weights"
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="the figures as JSON"
        )

    def handle(
        self, *, paths: list[Path], budgets: list[int], floor: bool, as_json: bool, **options: Any
    ) -> None:
        self._make_tables()
        try:
            evaluation = measures.collect(map(labelled.read, paths), budgets, floor, self._progress)
        except ImportRejectedError as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        if not any(evaluation.questions.values()):
            raise CommandError("There is no question with evidence in these files.")
        report: dict[str, Any] = {"sets": {}}
        for name, questions in evaluation.questions.items():
            report["sets"][name] = measures.measure(questions, WEIGHTS, budgets).summary()
            if floors := evaluation.floors.get(name):
                report["sets"][name]["floor"] = {
                    turns: of_floor.summary() for turns, of_floor in floors.items()
                }
        report |= evaluation.time_percentiles()
        self._print(report, as_json)

    def _make_tables(self) -> None:
        """Create the tables of an empty database. Never change the tables of a database in use."""
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

    def _print(self, report: Mapping[str, Any], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(report))
            return
        for name, figures in report["sets"].items():
            floors = figures.pop("floor", {})
            spread, kinds = figures.pop("spread"), figures.pop(measures.KINDS)
            self.stdout.write(f"{name}: {figures.pop('questions')} questions")
            for figure, value in figures.items():
                lowest, highest = spread[figure]
                of_floors = "".join(
                    f"   {floor} {of_floor[figure]:g}"
                    for floor, of_floor in floors.items()
                    if figure in of_floor
                )
                self.stdout.write(
                    f"{figure:>16}  {value:g}  ({lowest:g} to {highest:g}){of_floors}"
                )
            for kind, value in kinds.items():
                self.stdout.write(f"{measures.KINDS:>16}  {value:g}  {kind}")
        for name in ("p50_ms", "p95_ms"):
            self.stdout.write(f"{name:>16}  {report[name]:g}")
