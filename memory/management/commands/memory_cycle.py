"""Management command: run a whole memory cycle in the foreground, for cron, tests and imports."""

import sys
from argparse import ArgumentParser
from datetime import UTC, datetime

from django.core.management.base import BaseCommand

from memory.layers import cycle
from projects.command_arguments import find_project


def instant(text: str) -> datetime:
    """Parse an ISO 8601 time. Without an offset, it is in UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Command(BaseCommand):
    help = "Run one memory cycle: summarise due conversations, update the layers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument(
            "--now", metavar="ISO8601", type=instant, help="use this instant as the current time"
        )

    def handle(self, *args, **options) -> None:
        project = find_project(options["project"]) if options["project"] else None
        report = cycle.run(options["now"] or datetime.now(UTC), project, self.progress)
        self.stdout.write(
            f"conversations summarised: {report.summarised}, rewritten: {report.rewritten}, "
            f"projects rolled up: {report.rolled_up}, failed or left for later: {report.skipped}"
        )

    def progress(self, report: cycle.CycleReport) -> None:
        if sys.stderr.isatty():
            self.stderr.write(
                f"\r{report.summarised} summarised, {report.skipped} skipped", ending=""
            )
