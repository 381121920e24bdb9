"""Management command `prepare`: run before the processes of a new version are started."""

from typing import Any

from django.core.management.base import BaseCommand

from config.runtime import bootstrap


class Command(BaseCommand):
    help = "Update tables and broker and create the first user, as `up` does by itself."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        bootstrap.prepare(self.stdout.write)
