"""How much recall finds, and how fast, on labelled conversations."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

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
        try:
            figures = evaluation.evaluate(paths, budgets, self._progress)
        except Refused as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        if not figures.questions:
            raise CommandError("There is no question with evidence in these files.")
        self._tell(figures.told(), json)

    def _progress(self, line: str) -> None:
        if self.stderr.isatty():
            self.stderr.write(line, style_func=str)

    def _tell(self, told: dict[str, float], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(told))
        else:
            for name, value in told.items():
                self.stdout.write(f"{name:>10}  {value:g}")
