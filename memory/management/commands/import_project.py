"""Management command: create a project from an export of another Strata."""

from argparse import ArgumentParser
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from chat.importers import FileResult, ImportRejectedError
from memory.models import ActivityVerb
from memory.models.activity import record_activity
from memory.portability import import_project, members_of
from memory.portability.archive import MAX_NAME_CHARS
from projects import services
from projects.command_arguments import find_user


class Command(BaseCommand):
    help = "Create a project from a file that export_project wrote."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--owner", metavar="USERNAME", required=True, help="the owner of the new project"
        )
        parser.add_argument(
            "--name", help="name of the new project (default: the name in the file)"
        )
        parser.add_argument(
            "--members",
            action="store_true",
            help="add the members in the file whose usernames exist here, and import their "
            "messages, chats and blocks as theirs",
        )

    def handle(self, *, file: Path, owner: str, name: str | None, members: bool, **options) -> None:
        user = find_user(owner)
        if name and len(name) > MAX_NAME_CHARS:
            raise CommandError(f"--name can have at most {MAX_NAME_CHARS} characters.")
        result = FileResult()
        try:
            with ZipFile(file) as archive, transaction.atomic():
                called, people = members_of(archive)
                project = services.create_project(user, name=name or called)
                if members:
                    for known in get_user_model().objects.filter(username__in=people):
                        services.add_member(project, known, people[known.get_username()])
                import_project(project, user, archive, result, match_members=members)
                counts = {"sessions": result.sessions, "refused": result.refused}
                record_activity(
                    project.pk,
                    ActivityVerb.IMPORTED,
                    by=user,
                    count=result.imported,
                    receipt=counts,
                )
        except (ImportRejectedError, BadZipFile) as error:
            raise CommandError(f"{file}: {error}") from error
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        for reason in result.errors:
            self.stderr.write(f"  {reason}")
        summary = f"{result.sessions} sessions, {result.imported} messages"
        self.stdout.write(f"{project.slug}: {summary}")
