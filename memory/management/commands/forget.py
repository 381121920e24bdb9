"""Management command: forget permanently, like the API."""

import json
from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from memory.forgetting.service import ForgetScope, forget, preview
from memory.management.commands.memory_cycle import instant
from projects.command_arguments import find_project, find_user
from projects.core.errors import DomainError


class Command(BaseCommand):
    help = "Forget permanently, and print the receipt as JSON. Conditions are combined with AND."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", required=True)
        parser.add_argument("--session", metavar="ID", type=UUID)
        parser.add_argument("--message", metavar="ID", type=UUID)
        parser.add_argument("--entry", metavar="ID", type=UUID)
        parser.add_argument("--fact", metavar="ID", type=UUID)
        parser.add_argument("--file", metavar="ID", type=UUID)
        parser.add_argument(
            "--import",
            metavar="ID",
            type=UUID,
            dest="upload",
            help="the chats of this import, with all later messages in them",
        )
        parser.add_argument(
            "--user", metavar="NAME", help="the messages of this user and the replies to them"
        )
        parser.add_argument("--before", metavar="ISO8601", type=instant)
        parser.add_argument(
            "--sources",
            action="store_true",
            help="with --entry or --fact: also the source messages",
        )
        parser.add_argument(
            "--replies",
            action="store_true",
            help="also the replies whose prompt contained deleted text",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print the receipt, but change nothing"
        )

    def handle(self, *args, **options) -> None:
        project = find_project(options["project"])
        user = find_user(options["user"]).pk if options["user"] else None
        names = "session message entry fact upload file before sources replies"
        try:
            scope = ForgetScope(user=user, **{name: options[name] for name in names.split()})
            if reason := scope.missing_object(project):
                raise CommandError(reason)
            act = preview if options["dry_run"] else forget
            receipt = act(project, scope)
        except DomainError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(receipt.as_response(), indent=2, cls=DjangoJSONEncoder))
