"""A project to look around in, with two months of conversations."""

from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from memory import demo


class Command(BaseCommand):
    help = "Adds the demo project and prints its slug."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--owner", metavar="USERNAME", help="who owns it (default: the first administrator)"
        )

    def handle(self, *, owner: str | None, **options) -> None:
        users = get_user_model().objects
        if owner is not None:
            user = users.filter(username=owner).first()
        else:
            user = users.filter(is_superuser=True).order_by("pk").first()
        if user is None:
            raise CommandError(f"There is no user “{owner}”." if owner else "Nobody could own it.")
        self.stdout.write(demo.create_demo(user).slug)
