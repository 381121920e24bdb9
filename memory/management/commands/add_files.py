"""Management command: add files, folders and zip archives to a project."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from memory.files import adding
from memory.tasks import run_reading
from projects.command_arguments import find_project, find_user


class Command(BaseCommand):
    help = "Add files, the files in folders and those in zip archives to a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="the slug of the project")
        parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
        parser.add_argument("--user", metavar="NAME", help="who adds them")
        parser.add_argument(
            "--wait", action="store_true", help="wait until the files are read and indexed"
        )

    def handle(self, *args, **options) -> None:
        project = find_project(options["project"])
        user = find_user(options["user"]) if options["user"] else None
        added = 0
        for path, name in self._files(options["paths"]):
            try:
                with path.open("rb") as file:
                    result = adding.add_upload(project, user, name, file)
            except OSError as error:
                raise CommandError(f"{path}: {error.strerror or error}") from error
            added += len(result.added)
            for refused, reason in result.refused:
                self.stderr.write(f"{refused}: {reason}")
        if options["wait"]:
            run_reading()
        self.stdout.write(f"{added} files.")

    def _files(self, paths: list[Path]) -> Iterator[tuple[Path, str]]:
        """Yield the files with their names. Hidden files in folders are left out."""
        for path in paths:
            if path.is_file():
                yield path, path.name
            elif path.is_dir():
                for inner in sorted(path.rglob("*")):
                    parts = inner.relative_to(path).parts
                    if inner.is_file() and not any(part.startswith(".") for part in parts):
                        yield inner, str(inner.relative_to(path))
            else:
                raise CommandError(f"{path}: there is no such file.")
