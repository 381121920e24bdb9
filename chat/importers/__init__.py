"""Conversations from elsewhere. A format is a module here and a line in CHAT_IMPORTERS."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import BinaryIO, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from chat.importers.base import ImportedMessage, ImportedSession, Importer, ImportResult, Refused
from chat.models import Message, Role, Session, Visibility
from chat.replies import draft, post_messages
from projects.models import Project

__all__ = ["FileResult", "Refused", "import_file"]

KEPT_REASONS = 100
# Messages that are written in one transaction, so far as whole conversations allow.
BATCH = 1_000
# Bytes of the beginning of a file by which its format is recognised.
HEAD = 64 * 1024
UNSTORABLE = re.compile("\0|[\ud800-\udfff]")


class Reasons(list[str]):
    """Why items were refused: the first hundred reasons, and in `total` how many there were."""

    total = 0

    def append(self, reason: str) -> None:
        self.total += 1
        if len(self) < KEPT_REASONS:
            super().append(reason)


@dataclass
class FileResult(ImportResult):
    """What the import of one file did; `errors` keeps the first hundred reasons."""

    errors: Reasons = field(default_factory=Reasons)

    @property
    def refused(self) -> int:
        return self.errors.total


def import_file(
    project: Project,
    owner,
    name: str,
    file: BinaryIO,
    format: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> FileResult:
    """Adds to `project` what `file`, called `name`, holds and the project does not have yet.

    New conversations belong to `owner` and are shared with the project, with the times of their
    source. Each is written whole or not at all, so an import that was interrupted is finished by
    the next one. `progress` hears the messages done and all there are. Raises Refused.
    """
    format = format if format != "auto" else recognised(name, file)
    result = FileResult()
    found = _importer(format).sessions(name, file, result)
    conversations = [conversation for conversation in found if conversation.messages]
    total = sum(len(conversation.messages) for conversation in conversations)
    people = _people(project)
    for batch in _batches(conversations):
        _write(project, owner, format, batch, people, result)
        if progress:
            progress(result.imported + result.skipped, total)
    return result


def _batches(conversations: Iterable[ImportedSession]) -> Iterator[list[ImportedSession]]:
    """`conversations` in their order, so many at once as hold BATCH messages."""
    batch: list[ImportedSession] = []
    messages = 0
    for conversation in conversations:
        batch.append(conversation)
        messages += len(conversation.messages)
        if messages >= BATCH:
            yield batch
            batch, messages = [], 0
    if batch:
        yield batch


def recognised(name: str, file: BinaryIO) -> str:
    """The name of the format of `file`, which is read from its beginning again after this."""
    head = file.read(HEAD)
    file.seek(0)
    for format in settings.CHAT_IMPORTERS:
        if _importer(format).recognises(name, head):
            return format
    raise Refused(f"It is of none of the formats {', '.join(settings.CHAT_IMPORTERS)}.")


def _importer(format: str) -> Importer:
    if format not in settings.CHAT_IMPORTERS:
        raise Refused(f"“{format}” is none of the formats {', '.join(settings.CHAT_IMPORTERS)}.")
    return cast(Importer, import_module(settings.CHAT_IMPORTERS[format]))


def _people(project: Project) -> dict[str, object]:
    """The members of `project` by username."""
    members = get_user_model().objects.filter(memberships__project=project)
    return {user.get_username(): user for user in members}


@transaction.atomic
def _write(
    project: Project,
    owner,
    format: str,
    batch: Sequence[ImportedSession],
    people: Mapping[str, object],
    result: FileResult,
) -> None:
    """Writes what is new in a batch of conversations and counts it in `result`."""
    # One import at a time: the same file imported twice at once is not written twice. No key of
    # the project changes, so nobody else who writes in it has to wait.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    sessions = _sessions(project, owner, format, batch)
    known = _known(project, sessions.values())
    for conversation in batch:
        session = sessions[_source_key(format, conversation)]
        if session.visibility == Visibility.PRIVATE and session.creator_id != owner.pk:
            result.errors.append(f"“{conversation.title}”: a member keeps this chat private.")
            continue
        talk = {key(message.key): message for message in conversation.messages}
        new = talk.keys() - known[session.pk]
        if new:
            drafts = (_draft(mark, talk[mark], people) for mark in talk if mark in new)
            post_messages(session, list(drafts))
            known[session.pk] |= new
        result.sessions += 1
        result.imported += len(new)
        result.skipped += len(conversation.messages) - len(new)


def _source_key(format: str, conversation: ImportedSession) -> str:
    return key(f"{format}:{conversation.key}")


def _sessions(
    project: Project, owner, format: str, batch: Sequence[ImportedSession]
) -> dict[str, Session]:
    """The sessions of a batch by their source key; those that are not there yet are made."""
    wanted = {_source_key(format, conversation): conversation for conversation in batch}
    found = Session.objects.filter(project=project, source_key__in=wanted)
    sessions = {str(session.source_key): session for session in found}
    new = [
        _session(project, owner, source_key, conversation)
        for source_key, conversation in wanted.items()
        if source_key not in sessions
    ]
    Session.objects.bulk_create(new)
    return sessions | {str(session.source_key): session for session in new}


def _session(project: Project, owner, source_key: str, conversation: ImportedSession) -> Session:
    times = [message.at for message in conversation.messages]
    return Session(
        project=project,
        creator=owner,
        source_key=source_key,
        title=storable(conversation.title)[:200],
        visibility=Visibility.PROJECT,
        created_at=min(times),
        last_activity_at=max(times),
    )


def _known(project: Project, sessions: Iterable[Session]) -> dict[UUID, set[str]]:
    """The keys of the messages that came from a source, by session."""
    found = Message.objects.filter(
        project=project, session__in=list(sessions), source_key__isnull=False
    )
    known: dict[UUID, set[str]] = defaultdict(set)
    for session, source_key in found.values_list("session", "source_key"):
        known[session].add(str(source_key))
    return known


def _draft(source_key: str, message: ImportedMessage, people: Mapping[str, object]) -> Message:
    """A member of the project speaks as such, anyone else under the name in the source."""
    author = people.get(message.speaker) if message.role == Role.USER else None
    return draft(
        storable(message.text),
        role=message.role,
        author=author,
        author_name="" if author else storable(message.speaker)[:120],
        source_key=source_key,
        created_at=message.at,
    )


def storable(text: str) -> str:
    """`text` as PostgreSQL takes it: without NUL, and without halves of a surrogate pair."""
    return UNSTORABLE.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text)


def key(text: str) -> str:
    """An identity in its source as `source_key` holds it: a digest when it is too long."""
    text = storable(text)
    return text if len(text) <= 300 else sha256(text.encode()).hexdigest()
