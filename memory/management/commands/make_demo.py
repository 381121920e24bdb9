"""Management command: create the demo project, with two months of conversations."""

from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from memory import demo
from projects.command_arguments import find_user


class Command(BaseCommand):
    help = "Add the demo project, and print its slug."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--owner", metavar="USERNAME", help="the owner (default: the first administrator)"
        )

    def handle(self, *, owner: str | None, **options) -> None:
        administrators = get_user_model().objects.filter(is_superuser=True)
        user = find_user(owner) if owner is not None else administrators.order_by("pk").first()
        if user is None:
            raise CommandError("There is no administrator who could own it; use --owner.")
        self.stdout.write(demo.create_demo(user).slug)
