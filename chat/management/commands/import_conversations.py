"""Management command: import conversations from files into a project."""

from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.http import Http404

from chat.importers import FileResult, ImportRejectedError
from chat.importers.jobs import import_now
from projects.command_arguments import find_user
from projects.models import Project
from projects.permissions import ProjectArchivedError, project_for_writing

BAR = 30


class Command(BaseCommand):
    help = "Import conversations. A second import of the same file adds nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument(
            "--owner", required=True, metavar="USERNAME", help="the owner of the new conversations"
        )
        parser.add_argument(
            "--match-members",
            action="store_true",
            help="match authors with members by username, so that their messages belong to them",
        )
        parser.add_argument("--format", default="auto", choices=["auto", *settings.CHAT_IMPORTERS])

    def handle(
        self, *, files: list[Path], project: str, owner: str, format: str, match_members: bool, **_
    ) -> None:
        user = find_user(owner)
        into = _project(user, project)
        failed = []
        for path in files:
            try:
                with path.open("rb") as file, ProgressBar(self.stderr, path.name) as bar:
                    result = import_now(
                        into, user, path.name, file, format, bar.show, match_members
                    )
            except ImportRejectedError as reason:
                failed.append(f"{path}: {reason}")
            except OSError as error:
                failed.append(f"{path}: {error.strerror or error}")
            else:
                self._report(path.name, result)
        if failed:
            raise CommandError("\n".join(failed))

    def _report(self, name: str, result: FileResult) -> None:
        self.stdout.write(
            f"{name}: {result.sessions} sessions, {result.imported} messages imported, "
            f"{result.skipped} skipped, {result.refused} refused"
        )
        for reason in result.errors:
            self.stderr.write(f"  {reason}")
        if more := result.refused - len(result.errors):
            self.stderr.write(f"  and {more} more")


def _project(user, slug: str) -> Project:
    try:
        return project_for_writing(user, slug)
    except ProjectArchivedError as error:
        raise CommandError(str(error)) from None
    except Http404:
        raise CommandError(f"“{user}” is no owner or editor of a project “{slug}”.") from None


class ProgressBar:
    """A progress bar: one line that is redrawn, only on a terminal."""

    def __init__(self, out: OutputWrapper, label: str) -> None:
        self.out, self.label = out, label
        self.percent = -1

    def __enter__(self) -> "ProgressBar":
        return self

    def show(self, done: int, total: int) -> None:
        percent = 100 * done // total
        if percent != self.percent and self.out.isatty():
            filled = BAR * percent // 100
            self._draw(f"{self.label} {'━' * filled}{' ' * (BAR - filled)} {percent:3} %")
        self.percent = percent

    def __exit__(self, *_) -> None:
        if self.percent >= 0 and self.out.isatty():
            self._draw("")

    def _draw(self, line: str) -> None:
        # Return to the first column, write the line, and erase the rest of the previous line.
        self.out.write(f"\r{line}\x1b[K", style_func=str, ending="")
        self.out.flush()
