"""Management command `remove_factors`: for a user who has lost their second factor."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser

from projects.command_arguments import find_user


class Command(BaseCommand):
    help = "Remove a user's app, passkeys and recovery codes. The password alone is then enough."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *, username: str, **options: Any) -> str:
        removed, _ = Authenticator.objects.filter(user=find_user(username)).delete()
        if not removed:
            raise CommandError(f"{username} has no second factor.")
        return f"Removed {removed} second factor{'s' if removed > 1 else ''} of {username}."
