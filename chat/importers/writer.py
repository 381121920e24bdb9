"""What an importer found becomes part of a project's record."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q

from chat import tooling
from chat.changes import is_emoji
from chat.importers.base import ImportedMessage, ImportedSession, ImportResult
from chat.importers.images import Shown
from chat.importers.sources import key, mark_of
from chat.models import (
    Import,
    ImportedStretch,
    Message,
    MessageRevision,
    Reaction,
    Role,
    Session,
    Visibility,
)
from chat.replies import Placed, draft, post_messages
from chat.sessions import clamped
from chat.signals import import_planned
from chat.storable import storable
from projects.models import Project


@dataclass(frozen=True)
class Written:
    """A conversation as it is now: `new` was just added, `places` are all its messages by key."""

    conversation: ImportedSession
    session: Session
    new: list[Message]
    places: Mapping[str, UUID]

    def images(self) -> Iterator[Shown]:
        for message in self.conversation.messages:
            if message.images:
                yield Shown(self.session, self.places[key(message.key)], message.images)


class Record:
    """One import into `project` on behalf of `owner`, whose the new conversations are; what it adds
    is kept with `upload`.
    """

    def __init__(self, project: Project, owner, upload: Import | None = None) -> None:
        self.project, self.owner, self.upload = project, owner, upload
        members = get_user_model().objects.filter(memberships__project=project)
        self.people: Mapping[str, Any] = {user.get_username(): user for user in members}

    def write(
        self, format: str, batch: Sequence[ImportedSession], result: ImportResult
    ) -> list[Written]:
        """Writes what is new in a batch of conversations, all but images, and counts it in
        `result`. To be called in a transaction.
        """
        # One import at a time: the same file imported twice at once is not written twice. No key
        # of the project changes, so nobody else who writes in it has to wait.
        Project.objects.select_for_update(no_key=True).get(pk=self.project.pk)
        batch = self._not_forgotten(format, batch, result)
        sessions = self._sessions(format, batch)
        known = self._known(sessions.values())
        written = []
        for conversation in batch:
            session = sessions[_source_key(format, conversation)]
            if session.visibility == Visibility.PRIVATE and session.creator_id != self.owner.pk:
                # Not its title: what is noted here is not forgotten with it.
                began = f"{session.created_at:%Y-%m-%d %H:%M}"
                result.errors.append(f"The chat of {began}: a member keeps it private.")
                continue
            new = self._add(session, conversation, known[session.pk])
            result.sessions += 1
            result.imported += len(new)
            result.skipped += len(conversation.messages) - len(new)
            written.append(Written(conversation, session, new, known[session.pk]))
        self._keep_stretches(written)
        return written

    def _keep_stretches(self, written: Sequence[Written]) -> None:
        """Notes what this import added to which conversation, so that it can be revoked whole."""
        if self.upload is not None:
            ImportedStretch.objects.bulk_create(
                ImportedStretch(
                    project=self.project,
                    upload=self.upload,
                    session=one.session,
                    first_seq=one.new[0].seq,
                    last_seq=one.new[-1].seq,
                )
                for one in written
                if one.new
            )

    def _not_forgotten(
        self, format: str, batch: Sequence[ImportedSession], result: ImportResult
    ) -> list[ImportedSession]:
        """The batch without what was forgotten here; that counts as skipped."""
        marks: dict[str, set[str]] = {}
        for conversation in batch:
            source = _source_key(format, conversation)
            marks[source] = {mark_of(source), str(conversation.id)}
            for message in conversation.messages:
                marks[source] |= {key(message.key), mark_of(source, key(message.key))}
        asked = {mark for of_one in marks.values() for mark in of_one}
        answers = import_planned.send(sender=Message, project=self.project, subjects=asked)
        gone = {mark for _, answer in answers for mark in answer or ()}
        left = []
        for conversation in batch:
            source = _source_key(format, conversation)
            stays = [] if {mark_of(source), str(conversation.id)} & gone else conversation.messages
            stays = [
                message
                for message in stays
                if not {key(message.key), mark_of(source, key(message.key))} & gone
            ]
            result.skipped += len(conversation.messages) - len(stays)
            if stays:
                left.append(replace(conversation, messages=stays))
        return left

    def _sessions(self, format: str, batch: Sequence[ImportedSession]) -> dict[str, Session]:
        """The sessions of a batch by source key; those that are not there yet are made.

        An export of ours that comes back to where it was made belongs to the original.
        """
        wanted = {_source_key(format, conversation): conversation for conversation in batch}
        ours = {one.id: source_key for source_key, one in wanted.items() if one.id}
        there = Q(source_key__in=wanted) | Q(pk__in=ours)
        found = Session.objects.filter(there, project=self.project)
        sessions = {ours.get(one.pk) or str(one.source_key): one for one in found}
        new = [
            self._session(source_key, conversation)
            for source_key, conversation in wanted.items()
            if source_key not in sessions
        ]
        Session.objects.bulk_create(new)
        return sessions | {str(session.source_key): session for session in new}

    def _session(self, source_key: str, conversation: ImportedSession) -> Session:
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
            history_limit=clamped(conversation.history_limit),
            visibility=conversation.visibility,
            status=conversation.status,
            remembered=conversation.remembered,
            created_at=conversation.created_at or min(times),
            last_activity_at=max(times),
        )

    def _known(self, sessions: Iterable[Session]) -> dict[UUID, dict[str, UUID]]:
        """The messages of each session by what an export may call them: source key or id."""
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
        """Writes the messages that are not `known`, and makes them so."""
        talk = {key(message.key): message for message in conversation.messages}
        drafts = {
            mark: self._draft(mark, message) for mark, message in talk.items() if mark not in known
        }
        if not drafts:
            return []
        # What was there before it came from a source: the first import brings its own settings.
        fresh = session.head_id is None and not known
        continued = not fresh and self._continued_here(session)
        known |= {mark: message.pk for mark, message in drafts.items()}
        if not conversation.is_tree:
            return post_messages(session, list(drafts.values()))
        for mark, message in drafts.items():
            parent = talk[mark].parent
            message.parent_id = _place_of(session, known, parent) if parent else None
            message.remembered = talk[mark].remembered and (fresh or session.remembered)
        head = known.get(key(conversation.head)) if conversation.head else None
        at = Placed(session.head_id if continued else head)
        written = post_messages(session, list(drafts.values()), at=at)
        self._keep_changes([(message, talk[mark]) for mark, message in drafts.items()])
        return written

    def _keep_changes(self, written: Sequence[tuple[Message, ImportedMessage]]) -> None:
        """Earlier texts of messages, whoever replaced them, and the reactions of members."""
        revisions, reactions = [], []
        for message, told in written:
            place = {"project_id": message.project_id, "message": message}
            revisions += [
                MessageRevision(
                    **place,
                    version=one.version,
                    text=storable(one.text),
                    edited_by=self.people.get(one.editor),
                    edited_at=one.at,
                )
                for one in told.revisions
            ]
            reactions += [
                Reaction(**place, user=self.people[name], emoji=emoji)
                for name, emoji in told.reactions
                if name in self.people and is_emoji(emoji)
            ]
        MessageRevision.objects.bulk_create(revisions, batch_size=1_000)
        Reaction.objects.bulk_create(reactions, batch_size=1_000)

    def _continued_here(self, session: Session) -> bool:
        """Whether the path ends in what was said here: then the source does not move it."""
        said_here = session.messages.filter(source_key=None)
        return session.head_id is not None and said_here.filter(pk=session.head_id).exists()

    def _draft(self, source_key: str, message: ImportedMessage) -> Message:
        """A member of the project speaks as such, anyone else under the name in the source."""
        author = None
        if message.role == Role.USER:
            author = self.owner if message.own else self.people.get(message.speaker)
        return draft(
            storable(message.text),
            role=message.role,
            author=author,
            author_name="" if author else storable(message.speaker)[:120],
            source_key=source_key,
            created_at=message.at,
            tool_calls=tooling.written(message.tool_calls),
            tool_call_id=storable(message.tool_call_id),
            model=storable(message.model)[:200],
            status=message.status,
            error=storable(message.error)[:500],
            version=message.version,
            edited_at=message.edited_at,
            deleted_at=message.deleted_at,
            **message.usage,
        )


def _place_of(session: Session, known: dict[str, UUID], parent: str) -> UUID | None:
    """The message that `parent` names at the source, or its empty place if it was forgotten."""
    forgotten = mark_of(session.source_key or "", key(parent))
    return known.get(key(parent)) or known.get(forgotten)


def _source_key(format: str, conversation: ImportedSession) -> str:
    return key(f"{format}:{conversation.key}")
