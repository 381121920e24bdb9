"""Management command: export a project to a file."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memory.portability import ExportScope, export
from projects.command_arguments import find_project, find_user


class Command(BaseCommand):
    help = (
        "Write a project to a zip file for import_project, including private chats. With --user, "
        "write only that user's data."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument("--user", metavar="NAME", help="export only this user's own data")

    def handle(self, *, file: Path, project: str, user: str | None, **options) -> None:
        source = find_project(project)
        person = find_user(user) if user else None
        try:
            with file.open("xb") as out:
                try:
                    counts = export(ExportScope(source, person, only_own=person is not None), out)
                except BaseException:
                    # Otherwise an incomplete file would remain, and a second attempt would fail.
                    file.unlink()
                    raise
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        self.stdout.write(f"{file}: {summary or 'nothing'}")
