"""A project from the file that another Strata wrote."""

from argparse import ArgumentParser
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from chat.importers import FileResult, ImportRejectedError
from memory.portability import import_project, members_of
from projects import services
from projects.models import Project
from projects.services import create_project


class Command(BaseCommand):
    help = "Makes a project of a file that export_project wrote."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--owner", metavar="USERNAME", required=True, help="who owns it here")
        parser.add_argument("--name", help="what it is called here (default: as it was)")
        parser.add_argument(
            "--members",
            action="store_true",
            help="its members who have an account of the same name here are members again",
        )

    def handle(self, *, file: Path, owner: str, name: str | None, members: bool, **options) -> None:
        user = get_user_model().objects.filter(username=owner).first()
        if user is None:
            raise CommandError(f"There is no user “{owner}”.")
        result = FileResult()
        try:
            with ZipFile(file) as archive, transaction.atomic():
                called, people = members_of(archive)
                project = create_project(user, name=name or called)
                if members:
                    _add(project, people)
                import_project(project, archive, result)
        except (ImportRejectedError, BadZipFile) as error:
            raise CommandError(f"{file}: {error}") from error
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        for reason in result.errors:
            self.stderr.write(f"  {reason}")
        summary = f"{result.sessions} sessions, {result.imported} messages"
        self.stdout.write(f"{project.slug}: {summary}")


def _add(project: Project, people: dict[str, str]) -> None:
    """Add the people who have an account here, in the role that they had."""
    known = get_user_model().objects.filter(username__in=people)
    for user in known:
        services.add_member(project, user, people[user.get_username()])
