"""Management command `run`: run one part of Strata, for installations on several machines."""

import fcntl
import os
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.backup import restore_marker
from config.health import heartbeats
from config.runtime import commands, web


class Command(BaseCommand):
    help = "Run one part of Strata in place of `up`: web, worker or beat."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True)
        pages = parts.add_parser("web", help="a web process; any number may run")
        pages.add_argument("--host", default="127.0.0.1")
        pages.add_argument("--port", type=int, default=settings.PORT)
        pages.add_argument(
            "--drain",
            type=int,
            default=web.SHUTDOWN_S,
            help=f"seconds for the replies in progress when it stops ({web.SHUTDOWN_S})",
        )
        worker = parts.add_parser("worker", help="a worker; any number may run")
        worker.add_argument(
            "--queues",
            type=queues,
            default=settings.QUEUES,
            help="names, separated by commas (all)",
        )
        worker.add_argument("--concurrency", type=int, default=2, help="tasks at a time (2)")
        parts.add_parser("beat", help="starts scheduled tasks; several elect a leader")

    def handle(self, *args: Any, part: str, **options: Any) -> None:
        # The process imports Strata's apps from this folder.
        os.chdir(settings.BASE_DIR)
        with restore_marker.process_lock(fcntl.LOCK_SH):
            restore_marker.block_process()
            self.run(part, options)

    def run(self, part: str, options: dict[str, Any]) -> None:
        if part == "web":
            web.serve(web.bound_socket(options["port"], options["host"]), drain_s=options["drain"])
            return
        # Only here, because the folder may exist for workers and beat alone.
        try:
            heartbeats.touch()
        except OSError as error:
            raise CommandError(
                "STRATA_HEARTBEAT_FILE takes the path of a file that this account can write: "
                f"{error.filename}: {error.strerror}"
            ) from error
        command = (
            commands.worker(*options["queues"], concurrency=options["concurrency"])
            if part == "worker"
            else commands.beat()
        )
        os.execv(command[0], command)


def queues(text: str) -> list[str]:
    """Return the queues in a list separated by commas."""
    names = text.split(",")
    if unknown := set(names) - set(settings.QUEUES):
        known = ", ".join(settings.QUEUES)
        raise ArgumentTypeError(f"no queue {', '.join(sorted(unknown))}; the queues are {known}")
    return names
