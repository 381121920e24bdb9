"""Writes imported conversations to a project."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils.translation import gettext_noop as _

from chat.conversations.messages import PresetPlaces, draft, post_messages
from chat.conversations.sessions import clamp_history_limit
from chat.importers.base import (
    ImportedMessage,
    ImportedSession,
    ImportResult,
    source_digest,
    source_key_for,
)
from chat.importers.images import MessageImages
from chat.models import (
    Import,
    ImportedStretch,
    Message,
    MessageRevision,
    Reaction,
    Role,
    Session,
    SessionStatus,
    Visibility,
)
from chat.models.messages import MAX_REACTIONS, is_emoji
from chat.prompt.types import dump_tool_calls
from chat.signals import import_planned
from projects.core.text import storable
from projects.models import Project

PRIVATE = _("The chat of %s is private to another member.")


@dataclass(frozen=True)
class WrittenSession:
    """A conversation that was written. `new` are the messages that were added. `ids` are the ids of
    all its messages, by source key.
    """

    conversation: ImportedSession
    session: Session
    new: list[Message]
    ids: Mapping[str, UUID]

    def images(self) -> Iterator[MessageImages]:
        for message in self.conversation.messages:
            if message.images:
                yield MessageImages(
                    self.session, self.ids[source_key_for(message.key)], message.images
                )


class ImportWriter:
    """Writes one import into `project`. New conversations belong to `owner`. `upload` records what
    is added.

    A file can name any author. Therefore only the name of `owner` is matched with an account. Other
    authors become names without an account, unless an administrator chose `match_members`.
    """

    def __init__(
        self, project: Project, owner, upload: Import | None = None, match_members: bool = False
    ) -> None:
        self.project, self.owner, self.upload = project, owner, upload
        members = get_user_model().objects.filter(memberships__project=project)
        users = members if match_members else [owner]
        self.matched_users: Mapping[str, Any] = {user.get_username(): user for user in users}

    def write(
        self, format: str, batch: Sequence[ImportedSession], result: ImportResult
    ) -> list[WrittenSession]:
        """Write the new messages of a batch, without images, and count them in `result`.

        Call this in a transaction.
        """
        # Serialise imports, so that concurrent imports of a file do not write it twice. `no_key`
        # lets others insert rows that refer to the project.
        self.project = Project.objects.select_for_update(no_key=True).get(pk=self.project.pk)
        batch = self._without_forgotten(format, batch, result)
        sessions = self._sessions(format, batch)
        known = self._known(sessions.values())
        written = []
        for conversation in batch:
            session = sessions[_source_key(format, conversation)]
            reason = self._reason_against(session)
            keys = {source_key_for(message.key) for message in conversation.messages}
            if reason == PRIVATE or (reason and keys - known[session.pk].keys()):
                # Without the title: forgetting the chat does not delete this error.
                result.errors.append(reason % f"{session.created_at:%Y-%m-%d %H:%M}")
                continue
            if reason:
                result.sessions += 1
                result.skipped += len(conversation.messages)
                continue
            new = self._add(session, conversation, known[session.pk])
            result.sessions += 1
            result.imported += len(new)
            result.skipped += len(conversation.messages) - len(new)
            written.append(WrittenSession(conversation, session, new, known[session.pk]))
        self._record_stretches(written)
        return written

    def _reason_against(self, session: Session) -> str:
        """Return why `owner` may not add messages to the session, or "". `%s` is its start.

        A file can contain the id of any session. The rules are those of the API. In addition,
        `owner` may continue own closed chats, because `owner` could reopen them.
        """
        is_own = session.creator_id == self.owner.pk
        if session.visibility == Visibility.PRIVATE and not is_own:
            return PRIVATE
        if session.deleted_at is not None:
            return _("The chat of %s was deleted.")
        if session.is_notes and not is_own:
            return _("The chat of %s has the notes of another member.")
        if session.status == SessionStatus.CLOSED and not is_own:
            return _("The chat of %s is closed.")
        return ""

    def _record_stretches(self, written: Sequence[WrittenSession]) -> None:
        """Record the messages that this import added, so that they can be forgotten together."""
        if self.upload is not None:
            ImportedStretch.objects.bulk_create(
                ImportedStretch(
                    project=self.project,
                    upload=self.upload,
                    session=item.session,
                    first_seq=item.new[0].seq,
                    last_seq=item.new[-1].seq,
                )
                for item in written
                if item.new
            )

    def _without_forgotten(
        self, format: str, batch: Sequence[ImportedSession], result: ImportResult
    ) -> list[ImportedSession]:
        """Return the batch without forgotten messages, which are counted as skipped."""
        subjects = {
            name
            for conversation in batch
            for message in conversation.messages
            for name in _tombstone_subjects(format, conversation, message)
        }
        answers = import_planned.send(sender=Message, project=self.project, subjects=subjects)
        forgotten = {name for _, answer in answers for name in answer or ()}
        remaining = []
        for conversation in batch:
            messages = [
                message
                for message in conversation.messages
                if forgotten.isdisjoint(_tombstone_subjects(format, conversation, message))
            ]
            result.skipped += len(conversation.messages) - len(messages)
            if messages:
                remaining.append(replace(conversation, messages=messages))
        return remaining

    def _sessions(self, format: str, batch: Sequence[ImportedSession]) -> dict[str, Session]:
        """Return the sessions of a batch by source key. Lock them, and create the missing ones.

        If a session is imported into the project from which it was exported, the original session
        is returned.
        """
        wanted = {_source_key(format, conversation): conversation for conversation in batch}
        own = {item.id: source_key for source_key, item in wanted.items() if item.id}
        rows = Session.objects.filter(
            Q(source_key__in=wanted) | Q(pk__in=own), project=self.project
        )
        # Lock them before their heads and messages are read, so that nobody writes in between.
        locked = rows.select_for_update(of=("self",)).order_by("pk")
        sessions = {own.get(row.pk) or str(row.source_key): row for row in locked}
        new = [
            self._new_session(source_key, conversation)
            for source_key, conversation in wanted.items()
            if source_key not in sessions
        ]
        Session.objects.bulk_create(new)
        return sessions | {str(session.source_key): session for session in new}

    def _new_session(self, source_key: str, conversation: ImportedSession) -> Session:
        times = [message.at for message in conversation.messages]
        return Session(
            project=self.project,
            creator=self.owner,
            source_key=source_key,
            kind=conversation.kind,
            title=storable(conversation.title)[:200],
            title_by_hand=conversation.title_by_hand,
            pinned=conversation.pinned,
            archived_at=conversation.archived_at,
            history_limit=clamp_history_limit(conversation.history_limit),
            chat_model=conversation.chat_model,
            temperature=conversation.temperature,
            reasoning_effort=conversation.reasoning_effort,
            tags=conversation.tags,
            visibility=conversation.visibility,
            status=conversation.status,
            remembered=conversation.remembered,
            created_at=conversation.created_at or min(times),
            last_activity_at=max(times),
        )

    def _known(self, sessions: Iterable[Session]) -> dict[UUID, dict[str, UUID]]:
        """Return the message ids of each session, by source key and by the id itself as text.

        In an export of Strata, the keys of messages are their ids.
        """
        rows = Message.objects.filter(project=self.project, session__in=list(sessions))
        known: dict[UUID, dict[str, UUID]] = defaultdict(dict)
        for session, pk, source_key in rows.values_list("session", "pk", "source_key"):
            known[session][str(pk)] = pk
            if source_key:
                known[session][source_key] = pk
        return known

    def _add(
        self, session: Session, conversation: ImportedSession, known: dict[str, UUID]
    ) -> list[Message]:
        """Write the messages that are not in `known`. Add them to `known`."""
        messages = {source_key_for(message.key): message for message in conversation.messages}
        drafts = {
            key: self._draft(key, message) for key, message in messages.items() if key not in known
        }
        if not drafts:
            return []
        is_new = session.head_id is None and not known
        is_continued = not is_new and self._is_continued(session)
        known |= {key: message.pk for key, message in drafts.items()}
        if not conversation.is_tree:
            return post_messages(session, list(drafts.values()))
        cleared = _cleared_ids(session)
        # `session.remembered` of a new session is only for later messages.
        remembered = self.project.memory_enabled and (is_new or session.remembered)
        for key, message in drafts.items():
            parent = messages[key].parent
            parent_id = _parent_id(session, known, parent) if parent else None
            message.parent_id = None if parent_id in cleared else parent_id
            message.remembered = messages[key].remembered and remembered
        head = known.get(source_key_for(conversation.head)) if conversation.head else None
        at = PresetPlaces(session.head_id if is_continued or head in cleared else head)
        written = post_messages(session, list(drafts.values()), at=at)
        self._write_changes([(message, messages[key]) for key, message in drafts.items()])
        return written

    def _write_changes(self, written: Sequence[tuple[Message, ImportedMessage]]) -> None:
        """Write the earlier texts of messages, and the reactions of matched users."""
        revisions, reactions = [], []
        for message, imported in written:
            keys = {"project_id": message.project_id, "message": message}
            revisions += [
                MessageRevision(
                    **keys,
                    version=revision.version,
                    text=storable(revision.text),
                    edited_by=self.matched_users.get(revision.editor),
                    edited_at=revision.at,
                )
                for revision in imported.revisions
            ]
            reactions += [
                Reaction(**keys, user=self.matched_users[name], emoji=emoji)
                for name, emoji in _shown_reactions(imported)
                if name in self.matched_users
            ]
        MessageRevision.objects.bulk_create(revisions, batch_size=1_000)
        Reaction.objects.bulk_create(reactions, batch_size=1_000)

    def _is_continued(self, session: Session) -> bool:
        """Return whether the last message was written in Strata. Then an import keeps the active
        path.
        """
        written_here = session.messages.filter(source_key=None)
        return session.head_id is not None and written_here.filter(pk=session.head_id).exists()

    def _draft(self, source_key: str, message: ImportedMessage) -> Message:
        """Return the unsaved message. Its author is a matched user or the name in the source."""
        author = None
        if message.role == Role.USER:
            author = self.owner if message.own else self.matched_users.get(message.speaker)
        return draft(
            storable(message.text),
            role=message.role,
            author=author,
            author_name="" if author else storable(message.speaker)[:120],
            source_key=source_key,
            created_at=message.at,
            tool_calls=dump_tool_calls(message.tool_calls),
            tool_call_id=storable(message.tool_call_id),
            lookups=[asdict(lookup) for lookup in message.lookups],
            model=storable(message.model)[:200],
            status=message.status,
            error=storable(message.error)[:500],
            version=message.version,
            edited_at=message.edited_at,
            deleted_at=message.deleted_at,
            **message.usage,
        )


def _shown_reactions(imported: ImportedMessage) -> Iterator[tuple[str, str]]:
    """Yield pairs (user, emoji), at most MAX_REACTIONS of each user."""
    counts: Counter[str] = Counter()
    for name, emoji in imported.reactions:
        if is_emoji(emoji) and counts[name] < MAX_REACTIONS:
            counts[name] += 1
            yield name, emoji


def _cleared_ids(session: Session) -> set[UUID]:
    """Return the messages from before the session was cleared. No path may contain them."""
    if not session.cleared_through:
        return set()
    rows = session.messages.filter(project=session.project_id, seq__lte=session.cleared_through)
    return set(rows.values_list("pk", flat=True))


def _parent_id(session: Session, known: dict[str, UUID], parent: str) -> UUID | None:
    """Return the id of the message with the key `parent`, even if it was forgotten and is empty."""
    forgotten = source_digest(session.source_key or "", source_key_for(parent))
    return known.get(source_key_for(parent)) or known.get(forgotten)


def _source_key(format: str, conversation: ImportedSession) -> str:
    return source_key_for(f"{format}:{conversation.key}")


def _tombstone_subjects(
    format: str, conversation: ImportedSession, message: ImportedMessage
) -> tuple[str, ...]:
    """Return the ids and digests by which tombstones identify the message."""
    source, key = _source_key(format, conversation), source_key_for(message.key)
    return source_digest(source), str(conversation.id), key, source_digest(source, key)
