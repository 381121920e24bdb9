"""Memory's work in a process of its own, which may be killed at any instant."""

import os
import time
from datetime import datetime
from multiprocessing.synchronize import Event

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.conf import settings

from memory.layers import cycle
from memory.leases import Lease
from memory.models import Entry
from memory.models.leased import LeasedQuerySet
from memory.recall import indexing


def index(over: Event) -> None:
    """Has what changes found again by recall, until it is `over`."""
    while not over.is_set():
        indexing.catch_up()
        time.sleep(0.02)


def work(name: str, now: datetime, begun: Event, without: str = "") -> None:
    """One cycle after the other until nothing moves any more, all at `now`.

    The database knows this process by `name`, and so does the model, as part of its own. `without`
    takes a guard away, a fence or a lease, to see whether a test would notice.
    """
    if without:
        _take_away(without)
    os.environ["PGAPPNAME"] = name
    settings.SYSTEM_MODEL = f"openai-chat:{name}"
    begun.set()
    before = None
    while before != (before := _layers()):
        cycle.run(now)


def _layers() -> list[tuple]:
    return sorted(Entry.objects.values_list("pk", "state", "parent", "revision"))


def _take_away(guard: str) -> None:
    if guard == "fence":
        Lease.fence = lambda self: self.model.objects.select_for_update().get(pk=self.pk)
        Lease.renew = lambda self: None
    elif guard == "lease":
        LeasedQuerySet.unleased = lambda self: self
        Lease._held = lambda self: LeasedQuerySet(self.model).filter(pk=self.pk)
