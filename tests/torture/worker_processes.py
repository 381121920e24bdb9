"""Beats and workers in processes of their own, as the queue would bring them together."""

import os
from datetime import datetime

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.conf import settings

from memory.layers import conversations, cycle, digests

WORK = {
    "sessions": conversations.summarise,
    "entries": conversations.rewrite,
    "projects": digests.update_layers,
}


def beat(moments, queue, together) -> None:
    """At each of `moments` that it is sent (None ends it), puts all that is due into the queue."""
    while (now := moments.get()) is not None:
        due = cycle.due(now)
        # So that all beats have looked before anything is done.
        together.wait(60)
        for kind in WORK:
            for pk in getattr(due, kind):
                queue.put((kind, pk, now))
        moments.task_done()


def work(number: int, queue) -> None:
    """Does what comes, one thing after the other, until None comes."""
    os.environ["PGAPPNAME"] = f"worker-{number}"
    settings.SYSTEM_MODEL = f"openai-chat:worker-{number}"
    while (item := queue.get()) is not None:
        kind, pk, now = item
        _do(kind, pk, now)
        queue.task_done()
    queue.task_done()


def _do(kind: str, pk, now: datetime) -> None:
    WORK[kind](pk, now)
