"""Tombstones: what must not come back, in the database and in a file outside of it.

A backup that is restored is older than what was forgotten since; the file tells of that.
"""

import fcntl
import json
import os
from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from chat.importers.sources import mark_of
from chat.models import Message, Session
from memory.forgetting import facts
from memory.forgetting.finding import Found
from memory.models import Grave, Tombstone
from projects.models import Project


def bury(project: Project, found: Found) -> list[Tombstone]:
    """Marks the graves of what goes, before it goes; returns them.

    A session that goes whole has one grave; nothing of it comes back without it. A fact that was
    named has one for each text that it has or had, in each session that told it.
    """
    graves = [(Grave.SESSION, str(pk)) for pk in found.sessions]
    sessions = Session.objects.filter(pk__in=found.sessions).exclude(source_key=None)
    graves += [(Grave.SOURCE, mark_of(session.source_key or "")) for session in sessions]
    rows = Message.objects.filter(project=project, pk__in=found.messages)
    rows = rows.exclude(session__in=found.sessions)
    for pk, session_key, key in rows.values_list("pk", "session__source_key", "source_key"):
        graves.append((Grave.MESSAGE, str(pk)))
        if session_key and key:
            graves.append((Grave.SOURCE, mark_of(session_key, key)))
    stones = [Tombstone(project=project, kind=kind, subject=subject) for kind, subject in graves]
    buried = Tombstone.objects.bulk_create(stones, batch_size=1_000, ignore_conflicts=True)
    return [*buried, *facts.bury(project, found)]


def buried(project: Project, subjects: Collection[str]) -> set[str]:
    """Which of these ids and marks of sources were forgotten in `project`."""
    stones = Tombstone.objects.filter(project=project, subject__in=subjects)
    return set(stones.values_list("subject", flat=True))


def write_down(project: Project, graves: Sequence[Tombstone]) -> None:
    """Appends the graves to the file, and returns when they are on the disk.

    It is the last thing before the commit: should that fail, the file knows of something more that
    nobody is to see again, and never of less.
    """
    if not graves:
        return
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    handle = os.open(settings.TOMBSTONES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.writelines(_lines(project.pk, graves))
        file.flush()
        os.fsync(file.fileno())


def _lines(project_id: UUID, graves: Iterable[Tombstone]) -> Iterable[str]:
    at = timezone.now().isoformat()
    for grave in graves:
        told = {"at": at, "project": str(project_id), "kind": grave.kind, "subject": grave.subject}
        yield json.dumps(told) + "\n"
