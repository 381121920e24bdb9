"""Brings chunks and vectors up to date."""

import sys
from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from memory.recall import embedders, reindexing
from memory.recall.reindexing import Step
from projects.models import Project


class Command(BaseCommand):
    help = (
        "Cuts the record into chunks anew and embeds what lacks a vector. What is right already is "
        "left alone, so that it may be stopped and run again, beside a running Strata."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="only this project")
        parser.add_argument("--user", metavar="NAME", help="only sessions that this user began")
        parser.add_argument(
            "--embedder",
            action="store_true",
            help="only the vectors: those of the embedder that is set now are added, and then "
            "those of others removed",
        )

    def handle(self, *, project: str | None, user: str | None, embedder: bool, **_) -> None:
        into = self._found(Project, "project", slug=project) if project else None
        whose = self._found(get_user_model(), "user", username=user) if user else None
        if not embedder:
            done = reindexing.rebuild(into, whose, self._progress)
            self.stdout.write(
                f"{done.sessions} sessions indexed, {done.chunks} chunks written, "
                f"{done.failed} failed"
            )
            if done.failed:
                raise CommandError(
                    "What failed stays due; the admin shows why, under Index cursors."
                )
        try:
            added, removed = reindexing.embed(into, whose, self._progress)
        except embedders.EmbedderError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{added} vectors added, {removed} of other embedders removed")

    def _found(self, model, what: str, **wanted):
        found = model.objects.filter(**wanted).first()
        if found is None:
            raise CommandError(f"There is no {what} “{next(iter(wanted.values()))}”.")
        return found

    def _progress(self, step: Step) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{step.what}: {step.done} of {step.total}\x1b[K", ending="")
