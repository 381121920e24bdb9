"""Bring an external database up to date, before the processes of a new version start."""

from typing import Any

from django.core.management.base import BaseCommand

from config import preparing


class Command(BaseCommand):
    help = "Bring tables and broker up to date and make the first user, as `up` does by itself."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        preparing.prepare(self.stdout.write)
