"""Tombstones: what must not come back, in the database and in a file outside of it.

A backup that is restored is older than what was forgotten since; the file tells of that.
"""

import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from chat.importers.sources import mark_of
from chat.models import Message, Session
from memory.forgetting import facts
from memory.forgetting.buried import mark_of_user
from memory.forgetting.found import Found
from memory.models import Grave, Tombstone
from projects.models import Project


class Damaged(Exception):
    """The file is not what was written; the text says where, for people."""


@dataclass(frozen=True)
class Stone:
    """One line of the file: what was forgotten, where, and when, as texts."""

    at: str
    project: str
    kind: str
    subject: str


def bury(project: Project, found: Found) -> list[Tombstone]:
    """Marks the graves of what goes, before it goes; returns them.

    A session that goes whole has one grave; nothing of it comes back without it. A fact that was
    named has one for each text that it has or had, in each session that told it. Entries that go
    with what they were made of need none.
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
    graves += [(Grave.UNKEPT, str(pk)) for pk in found.unremembered]
    graves += [(Grave.ENTRY, str(pk)) for pk in found.named_entries]
    graves += [(Grave.BLOCK, str(pk)) for pk in found.blocks]
    graves += [(Grave.RECORD, str(pk)) for pk in found.named_facts]
    graves += [(Grave.UPLOAD, str(pk)) for pk in found.uploads]
    if found.user is not None:
        graves.append((Grave.USER, mark_of_user(found.user, timezone.now().isoformat())))
    stones = [Tombstone(project=project, kind=kind, subject=subject) for kind, subject in graves]
    buried = Tombstone.objects.bulk_create(stones, batch_size=1_000, ignore_conflicts=True)
    return [*buried, *facts.bury(project, found)]


def buried(project: Project, subjects: Collection[str]) -> set[str]:
    """Which of these ids and marks of sources were forgotten in `project`."""
    stones = Tombstone.objects.filter(project=project, subject__in=subjects)
    return set(stones.exclude(kind=Grave.UNKEPT).values_list("subject", flat=True))


def stones_of(graves: Iterable[Tombstone]) -> list[Stone]:
    """The lines of these graves."""
    return [
        Stone(grave.at.isoformat(), str(grave.project_id), grave.kind, grave.subject)
        for grave in graves
    ]


def stone_of_project(project: UUID) -> Stone:
    """The line of a project that is deleted."""
    return Stone(timezone.now().isoformat(), str(project), Grave.PROJECT, str(project))


def write_down(stones: Sequence[Stone]) -> None:
    """Appends the graves to the file, and returns when they are on the disk.

    It is the last thing before the commit: should that fail, the file knows of something more that
    nobody is to see again, and never of less.
    """
    if not stones:
        return
    settings.TOMBSTONES.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(settings.TOMBSTONES, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # A power cut may have left half a line, which is not to spoil the next.
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(handle, 1, end - 1) != b"\n":
            file.write(b"\n")
        file.writelines(json.dumps(asdict(stone)).encode() + b"\n" for stone in stones)
        file.flush()
        os.fsync(handle)


def read(path: Path) -> Iterator[Stone]:
    """The lines of such a file. Raises Damaged, and OSError when it cannot be read.

    Half a line is passed over: it is what a power cut left of a forgetting that never came to its
    commit, since the line is on the disk before that.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            told = line.strip(b"\0 \r\n")
            if told.startswith(b"{") and told.endswith(b"}"):
                yield _stone(told, f"{path}, line {number}")
            elif told and not told.startswith(b'{"at"'[: len(told)]):
                raise Damaged(f"{path}, line {number}: this is not a tombstone.")


def _stone(line: bytes, place: str) -> Stone:
    """Raises Damaged."""
    try:
        stone = Stone(**json.loads(line))
        UUID(stone.project)
        datetime.fromisoformat(stone.at)
        if stone.kind not in Grave.values or not isinstance(stone.subject, str):
            raise ValueError(stone.kind)
    except (ValueError, TypeError) as error:
        raise Damaged(f"{place}: this is not a tombstone ({error}).") from error
    return stone
