"""Tombstones: records of what was forgotten, in the database and in a file outside of it.

The file is not part of a backup, so that a restore can delete again what was forgotten after the
backup.
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

from chat.importers.base import source_digest
from chat.models import Message, Session
from memory.facts.extraction import create_fact_tombstones
from memory.forgetting.facts import all_versions
from memory.forgetting.scope import DeletionSet
from memory.models import Tombstone, TombstoneKind
from projects.core.errors import InvalidInputError
from projects.models import Project

# The kinds whose subject contains a hash and is no id.
HASHED_KINDS = (TombstoneKind.SOURCE, TombstoneKind.FACT, TombstoneKind.REDACTED)


class TombstoneFileError(InvalidInputError):
    """A line of a tombstone file was not written by Strata."""


@dataclass(frozen=True)
class TombstoneRecord:
    """One line of the tombstone file, all values as text."""

    at: str
    project: str
    kind: str
    subject: str


def create_tombstones(project: Project, deletions: DeletionSet) -> list[Tombstone]:
    """Create and return the tombstones of the rows that are about to be deleted.

    If a session is deleted completely, its tombstones cover its messages. A named fact gets a
    tombstone for each of its current and earlier texts in each of its source sessions. Entries that
    are deleted only because their sources are gone need no tombstone.
    """
    subjects = [(TombstoneKind.SESSION, str(pk)) for pk in deletions.sessions]
    sessions = Session.objects.filter(pk__in=deletions.sessions).exclude(source_key=None)
    subjects += [
        (TombstoneKind.SOURCE, source_digest(session.source_key or "")) for session in sessions
    ]
    rows = Message.objects.filter(project=project, pk__in=deletions.messages)
    rows = rows.exclude(session__in=deletions.sessions)
    for pk, session_key, key in rows.values_list("pk", "session__source_key", "source_key"):
        subjects.append((TombstoneKind.MESSAGE, str(pk)))
        if session_key and key:
            subjects.append((TombstoneKind.SOURCE, source_digest(session_key, key)))
    # If a file stays but its summary is forgotten, the file is not summarised again.
    unremembered_files = deletions.summarised_files - deletions.files - deletions.changed_files
    named = {
        TombstoneKind.UNKEPT: deletions.unremembered | unremembered_files,
        TombstoneKind.ENTRY: deletions.named_entries,
        TombstoneKind.BLOCK: deletions.blocks,
        TombstoneKind.RECORD: deletions.named_facts,
        TombstoneKind.UPLOAD: deletions.uploads,
        TombstoneKind.FILE: deletions.files,
    }
    subjects += [(kind, str(pk)) for kind, ids in named.items() for pk in ids]
    if deletions.user is not None:
        # A user can be forgotten several times, each time with the texts from before the moment
        # `before`.
        before = deletions.before or timezone.now()
        subjects.append((TombstoneKind.USER, f"{deletions.user}@{before.isoformat()}"))
    tombstones = [
        Tombstone(project=project, kind=kind, subject=subject) for kind, subject in subjects
    ]
    created = Tombstone.objects.bulk_create(tombstones, batch_size=1_000, ignore_conflicts=True)
    return [*created, *create_fact_tombstones(all_versions(project, deletions.named_facts))]


def parse_user(subject: str) -> tuple[int, datetime]:
    """Return the user id and the time in the subject of a tombstone of the kind USER. Texts of the
    user from before that time are forgotten.
    """
    user, _, before = subject.partition("@")
    return int(user), datetime.fromisoformat(before)


def forgotten_subjects(project: Project, subjects: Collection[str]) -> set[str]:
    """Return the `subjects` (ids or source digests) that were forgotten in `project`."""
    rows = Tombstone.objects.filter(project=project, subject__in=subjects)
    return set(rows.exclude(kind=TombstoneKind.UNKEPT).values_list("subject", flat=True))


def records_of(tombstones: Iterable[Tombstone]) -> list[TombstoneRecord]:
    return [
        TombstoneRecord(row.at.isoformat(), str(row.project_id), row.kind, row.subject)
        for row in tombstones
    ]


def project_record(project: UUID) -> TombstoneRecord:
    """Return the record of a project that is being deleted."""
    return TombstoneRecord(
        timezone.now().isoformat(), str(project), TombstoneKind.PROJECT, str(project)
    )


def append_to_file(records: Sequence[TombstoneRecord]) -> None:
    """Append `records` to the tombstone file, and return when they are on the disk.

    Call this directly before the commit. If the commit then fails, the file has a superfluous
    tombstone. If the file were written after the commit, a crash between the two would lose a
    tombstone.
    """
    if not records:
        return
    settings.TOMBSTONES.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(settings.TOMBSTONES, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # A power failure may have left an incomplete line. End it before appending the next line.
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(handle, 1, end - 1) != b"\n":
            file.write(b"\n")
        file.writelines(json.dumps(asdict(record)).encode() + b"\n" for record in records)
        file.flush()
        os.fsync(handle)


def read_file(path: Path) -> Iterator[TombstoneRecord]:
    """Yield the records of a tombstone file. Raises `TombstoneFileError`, and OSError.

    An incomplete line is skipped. A power failure interrupted its writing, so its request was not
    committed: the commit follows only when the line is on the disk.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            data = line.strip(b"\0 \r\n")
            if data.startswith(b"{") and data.endswith(b"}"):
                yield parse_record(data, f"{path}, line {number}")
            elif data and not data.startswith(b'{"at"'[: len(data)]):
                raise TombstoneFileError(f"{path}, line {number}: this is not a tombstone.")


def parse_record(data: bytes, position: str) -> TombstoneRecord:
    """Return the record in one line. Raises `TombstoneFileError` with `position`."""
    try:
        record = TombstoneRecord(**json.loads(data))
        UUID(record.project)
        datetime.fromisoformat(record.at)
        if record.kind not in TombstoneKind.values or not isinstance(record.subject, str):
            raise ValueError(record.kind)
        if record.kind == TombstoneKind.USER:
            parse_user(record.subject)
        elif record.kind not in HASHED_KINDS:
            UUID(record.subject)
    except (ValueError, TypeError) as error:
        raise TombstoneFileError(f"{position}: this is not a tombstone ({error}).") from error
    return record
