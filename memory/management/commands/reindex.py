"""Management command: update the chunks and vectors of the search index."""

import sys
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from memory.recall import embedders, reindexing
from memory.recall.reindexing import ReindexProgress
from projects.command_arguments import find_project, find_user


class Command(BaseCommand):
    help = (
        "Update the chunks of all sessions, and add missing vectors. Chunks that are up to date "
        "are not written again. It can run beside a server, and can be stopped and repeated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument("--user", metavar="NAME", help="only sessions that this user created")
        parser.add_argument(
            "--embedder",
            action="store_true",
            help="update only the vectors: add those of the current embedder, then remove those "
            "of other embedders",
        )

    def handle(self, *, project: str | None, user: str | None, embedder: bool, **_) -> None:
        target = find_project(project) if project else None
        owner = find_user(user) if user else None
        if not embedder:
            done = reindexing.reindex(target, owner, self._progress)
            self.stdout.write(
                f"{done.sessions} sessions indexed, {done.chunks} chunks written, "
                f"{done.failed} failed"
            )
            if done.failed:
                raise CommandError(
                    "Failed sessions stay due; the admin shows the reasons under Indexing progress."
                )
        try:
            added, removed = reindexing.replace_vectors(target, owner, self._progress)
        except embedders.EmbedderError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{added} vectors added, {removed} of other embedders removed")

    def _progress(self, progress: ReindexProgress) -> None:
        if sys.stderr.isatty():
            self.stderr.write(
                f"\r{progress.step}: {progress.done} of {progress.total}\x1b[K", ending=""
            )
