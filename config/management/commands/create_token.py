"""Management command `create_token`: create an API token."""

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from projects import services
from projects.command_arguments import find_project
from projects.models import SCOPES, Project, Token

MAX_LIFETIME_DAYS = 36_500
MAX_NAME_CHARS = 120


class Command(BaseCommand):
    help = "Print a new API token of a user. It cannot be shown again: only a digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--create",
            action="store_true",
            help="create a missing user, without a password, as an editor of --project",
        )
        parser.add_argument("--name", default="", help="the token's name, shown in lists of tokens")
        parser.add_argument("--project", metavar="SLUG", help="limit the token to one project")
        parser.add_argument(
            "--scope", default=",".join(SCOPES), help="some of read,write,admin (default: all)"
        )
        parser.add_argument(
            "--expires", type=int, metavar="DAYS", help="lifetime in days (default: unlimited)"
        )

    @transaction.atomic
    def handle(
        self, *, username: str, create: bool, name: str, scope: str, expires: int | None, **options
    ) -> str:
        if len(name) > MAX_NAME_CHARS:
            raise CommandError(f"--name can have at most {MAX_NAME_CHARS} characters.")
        if expires is not None and not 1 <= expires <= MAX_LIFETIME_DAYS:
            raise CommandError(f"--expires must be a number of days from 1 to {MAX_LIFETIME_DAYS}.")
        requested = {word.strip() for word in scope.split(",")}
        if unknown := requested - set(SCOPES):
            raise CommandError(f"Unknown scope “{min(unknown)}”: use {', '.join(SCOPES)}.")
        users = get_user_model().objects
        user: Any = users.filter(username=username).first()
        is_new = user is None
        if is_new and not create:
            raise CommandError(f"There is no user “{username}”; --create creates one.")
        user = user or create_user(username)
        slug = options["project"]
        _, token = Token.issue(
            user,
            name=name,
            project=join_project(slug, user, is_new) if slug else None,
            scopes=[known for known in SCOPES if known in requested],
            expiry=None if expires is None else timezone.now() + timedelta(days=expires),
        )
        return token


def create_user(username: str) -> Any:
    """Create a user without a password. Raises CommandError if the username is not valid, or if
    another differs from it only in its case: at sign-in, the case does not matter.
    """
    users = get_user_model()
    if similar := users.objects.filter(username__iexact=username).first():
        raise CommandError(f"There is already a user “{similar.get_username()}”.")
    try:
        users(username=username).clean_fields(exclude={"password"})
    except ValidationError as error:
        raise CommandError(f"“{username}” is not a username: {' '.join(error.messages)}") from error
    return users.objects.create_user(username)


def join_project(slug: str, user: Any, is_new: bool) -> Project:
    """Return the project. A new user becomes an editor of it. An existing user must be a member."""
    project = find_project(slug)
    if is_new:
        services.add_member(project, user)
    elif not project.memberships.filter(user=user).exists():
        raise CommandError(f"{user} is not a member of “{slug}”.")
    return project
