"""Memory cycles in a process of their own, which may be killed at any instant."""

import os
from datetime import datetime
from multiprocessing.synchronize import Event

from tests.torture import ready  # noqa: F401

# isort: split
from django.conf import settings

from memory.layers import cycle
from memory.models import Entry


def work(name: str, now: datetime, begun: Event) -> None:
    """One cycle after the other until nothing moves any more, all at `now`.

    The database knows this process by `name`, and so does the model, as part of its own.
    """
    os.environ["PGAPPNAME"] = name
    settings.SYSTEM_MODEL = f"openai-chat:{name}"
    begun.set()
    before = None
    while before != (before := _layers()):
        cycle.run(now)


def _layers() -> list[tuple]:
    return sorted(Entry.objects.values_list("pk", "state", "parent", "revision"))
