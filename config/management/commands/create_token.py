"""Prints a new API token, and nothing else, on standard output."""

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from projects import members
from projects.models import SCOPES, Project, Token

LONGEST_DAYS = 36_500
LONGEST_NAME = 120


class Command(BaseCommand):
    help = "Prints a new API token for a user. It is shown this once: only a digest is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--create",
            action="store_true",
            help="make the user if there is none: without a password, and an editor of --project",
        )
        parser.add_argument("--name", default="", help="what it is for, as lists call it")
        parser.add_argument("--project", metavar="SLUG", help="the one project that it opens")
        parser.add_argument(
            "--scope", default=",".join(SCOPES), help="some of read,write,admin (default: all)"
        )
        parser.add_argument(
            "--expires", type=int, metavar="DAYS", help="days that it is valid (default: for ever)"
        )

    @transaction.atomic
    def handle(self, *, username: str, create: bool, **options: Any) -> str:
        user, is_new = _user(username, create)
        project = _project(options["project"], user, is_new) if options["project"] else None
        days = options["expires"]
        _, token = Token.issue(
            user,
            name=_name(options["name"]),
            project=project,
            scopes=_scopes(options["scope"]),
            expiry=None if days is None else timezone.now() + _lifetime(days),
        )
        return token


def _user(username: str, create: bool) -> tuple[Any, bool]:
    """The user of that name, and whether it was made just now."""
    users = get_user_model()
    user = users.objects.filter(username=username).first()
    if user is None and not create:
        raise CommandError(f"There is no user “{username}”; --create makes one.")
    return user or users.objects.create_user(username), user is None


def _project(slug: str, user, is_new: bool) -> Project:
    """The project that the token opens; a new user becomes an editor of it."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project “{slug}”.")
    if is_new:
        members.add(project, user)
    elif not project.memberships.filter(user=user).exists():
        raise CommandError(f"{user} is not a member of “{slug}”.")
    return project


def _scopes(text: str) -> list[str]:
    asked = {scope.strip() for scope in text.split(",")}
    if unknown := asked - set(SCOPES):
        raise CommandError(f"Unknown scope “{min(unknown)}”: there are {', '.join(SCOPES)}.")
    return [scope for scope in SCOPES if scope in asked]


def _name(name: str) -> str:
    if len(name) > LONGEST_NAME:
        raise CommandError(f"--name takes at most {LONGEST_NAME} characters.")
    return name


def _lifetime(days: int) -> timedelta:
    if not 1 <= days <= LONGEST_DAYS:
        raise CommandError(f"--expires takes days, from 1 to {LONGEST_DAYS}.")
    return timedelta(days=days)
