"""Run real Celery workers whose processes write their current phase to a file.

Only for tests: `celery -A tests.torture.monitored_worker worker`. The file name is the process id.
The file holds a phase (CONTRACT, `make torture`) and the row whose lease covers the work.
"""

import os
from collections.abc import Callable
from pathlib import Path

from tests.torture import django_setup  # noqa: F401

# isort: split
from celery import signals

from config.celery import app

__all__ = ["app"]

# What Celery's `-A` takes.
APP = "tests.torture.monitored_worker"
# The variable that names the folder of the notes.
NOTES = "STRATA_TORTURE_NOTES"
# A note is always so long, so that it is overwritten in one go.
LENGTH = 60
IDLE = "idle"


class Note:
    """What this process is at."""

    def __init__(self) -> None:
        path = Path(os.environ[NOTES]) / str(os.getpid())
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self._row = ""
        self.at(IDLE)

    def at(self, phase: str, row: object = None) -> None:
        self._row = self._row if row is None else str(row)
        os.pwrite(self._file, f"{phase} {self._row}".ljust(LENGTH).encode(), 0)


def around(
    place: object, name: str, before: Callable[..., None] | None, after: Callable[[], None]
) -> None:
    """Has `before`, with the arguments, and `after` called around a function."""
    wrapped = getattr(place, name)

    def noted(*args, **kwargs):
        if before is not None:
            before(*args)
        try:
            return wrapped(*args, **kwargs)
        finally:
            after()

    setattr(place, name, noted)


@signals.worker_process_init.connect
def note_child_state(**_) -> None:
    """The database and the model know a child by its name."""
    from django.conf import settings

    from memory import leases
    from memory.layers import digests
    from memory.layers.conversations import SummaryJob
    from memory.layers.model_calls import CallRecorder

    name = f"child-{os.getpid()}"
    os.environ["PGAPPNAME"] = name
    settings.SYSTEM_MODEL = f"openai-chat:{name}"
    note = Note()
    # Before it is claimed, so that no row is held by a dead process that is not known to hold it.
    around(leases, "claim", lambda rows, pk: note.at("claim", pk), lambda: None)
    around(CallRecorder, "ask", lambda *_: note.at("call"), lambda: note.at("commit"))
    for place, commit in (
        (SummaryJob, "commit"),
        (SummaryJob, "commit_rewritten"),
        (SummaryJob, "reinstate"),
        (digests.LayerUpdate, "commit"),
    ):
        around(place, commit, None, lambda: note.at("acknowledge"))
    for signal in (signals.task_prerun, signals.task_postrun):
        signal.connect(lambda **_: note.at(IDLE, ""), weak=False)


@signals.worker_init.connect
def note_parent_state(**_) -> None:
    """It acknowledges what its children have done."""
    from celery.worker.request import Request

    note = Note()
    around(Request, "acknowledge", lambda *_: note.at("acknowledge"), lambda: note.at(IDLE))
