"""Management command `revoke_token`: revoke API tokens."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from projects.command_arguments import find_user
from projects.models import Token


class Command(BaseCommand):
    help = "Revoke tokens of a user. They are invalid from the next request on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        selection = parser.add_mutually_exclusive_group(required=True)
        selection.add_argument("--name", help="the tokens with this name")
        selection.add_argument("--id", type=UUID, help="the token with this id, as in the API")
        selection.add_argument("--all", action="store_true", help="all tokens")

    def handle(self, *, username: str, name: str | None, id: UUID | None, **options: Any) -> str:
        tokens = Token.objects.filter(user=find_user(username))
        if name is not None:
            tokens = tokens.filter(name=name)
        if id is not None:
            tokens = tokens.filter(public_id=id)
        revoked, _ = tokens.delete()
        if not revoked:
            raise CommandError(f"{username} has no such token.")
        return f"Revoked {revoked} token{'s' if revoked > 1 else ''}."
