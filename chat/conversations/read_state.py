"""Read state: reactions and alternatives of messages as a reader sees them, and unread sessions."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from chat.models import Message, Reaction, Seen, Session
from projects.core.database import PreparedQuery

# The maximum number of alternatives that the API lists before a message, and after it.
MAX_SIBLINGS = 100


@dataclass(frozen=True)
class ReactionCount:
    """An emoji below a message: how many users added it, and whether the reader is one of them."""

    emoji: str
    count: int
    mine: bool


@dataclass(frozen=True)
class MessageRelations:
    """The alternatives of a message, including itself, and the reactions to it."""

    message: UUID
    siblings: tuple[UUID, ...]
    reactions: tuple[ReactionCount, ...]

    @property
    def place(self) -> int:
        """The number of the message among its alternatives, from 1."""
        return self.siblings.index(self.message) + 1

    @property
    def nearest(self) -> tuple[UUID, ...]:
        """The message with at most MAX_SIBLINGS alternatives before it, and as many after it."""
        # It is not among them if it was deleted for good in the meantime.
        index = self.place - 1 if self.message in self.siblings else 0
        return self.siblings[max(index - MAX_SIBLINGS, 0) : index + MAX_SIBLINGS + 1]

    @property
    def before(self) -> UUID | None:
        return self.siblings[self.place - 2] if self.place > 1 else None

    @property
    def after(self) -> UUID | None:
        return self.siblings[self.place] if self.place < len(self.siblings) else None


def message_relations(messages: Iterable[Message], reader) -> dict[UUID, MessageRelations]:
    """Return the relations of each message by id, for the user `reader`. Takes two queries."""
    messages = list(messages)
    rows_by_place = _siblings(messages)
    # Shared by all messages of a place, because an imported chat can have thousands there.
    existing = {
        place: tuple(pk for pk, is_deleted in rows if not is_deleted)
        for place, rows in rows_by_place.items()
    }

    def siblings(message: Message) -> tuple[UUID, ...]:
        place = (message.session_id, message.parent_id, message.role)
        if message.pk in existing.get(place, ()):
            return existing[place]
        rows = rows_by_place[place]
        return tuple(pk for pk, is_deleted in rows if not is_deleted or pk == message.pk)

    rows = Reaction.objects.filter(message__in=[message.pk for message in messages])
    reactions = _count_reactions(rows.values_list("message_id", "emoji", "user_id"), reader)
    return {
        message.pk: MessageRelations(message.pk, siblings(message), tuple(reactions[message.pk]))
        for message in messages
    }


def _siblings(messages: list[Message]) -> dict[tuple, list[tuple[UUID, bool]]]:
    """Return pairs (id, whether deleted) in order, by session, parent and role."""
    parents = [message.parent_id for message in messages if message.parent_id]
    roots = [message.session_id for message in messages if not message.parent_id]
    rows = Message.objects.filter(Q(parent__in=parents) | Q(session__in=roots, parent=None))
    columns = rows.order_by("seq").values_list(
        "pk", "session_id", "parent_id", "role", "deleted_at"
    )
    siblings = defaultdict(list)
    for pk, session, parent, role, deleted_at in columns:
        siblings[session, parent, role].append((pk, deleted_at is not None))
    return siblings


def _count_reactions(
    rows: Iterable[tuple[UUID, str, int]], reader
) -> dict[UUID, list[ReactionCount]]:
    """Return the reactions by message, in the order in which each emoji was first used."""
    users = defaultdict(list)
    for message, emoji, user in rows:
        users[message, emoji].append(user)
    reactions = defaultdict(list)
    reader_id = getattr(reader, "pk", None)
    for (message, emoji), ids in users.items():
        reactions[message].append(ReactionCount(emoji, len(ids), reader_id in ids))
    return reactions


def relations_of(message: Message, reader) -> MessageRelations:
    """Return the relations of one message, like `message_relations` but faster."""
    reactions = _count_reactions(_reaction_rows(message.pk), reader)[message.pk]
    return MessageRelations(message.pk, siblings_of(message), tuple(reactions))


def siblings_of(message: Message) -> tuple[UUID, ...]:
    """Return the ids of the alternatives of a message and its own, in order. Takes one query."""
    if message.parent_id is None:
        return message_relations([message], None)[message.pk].siblings
    rows = _alternatives(message.parent_id, message.role)
    return tuple(pk for pk, deleted_at in rows if deleted_at is None or pk == message.pk)


@PreparedQuery.of(UUID, str)
def _alternatives(parent: UUID, role: str) -> QuerySet:
    rows = Message.objects.filter(parent=parent, role=role)
    return rows.order_by("seq").values_list("pk", "deleted_at")


@PreparedQuery.of(UUID)
def _reaction_rows(message: UUID) -> QuerySet:
    return Reaction.objects.filter(message=message).values_list("message_id", "emoji", "user_id")


def mark_read(session: Session, user) -> None:
    """Record that `user` has read all messages of `session`."""
    row = Seen(project_id=session.project_id, session=session, user=user, seq=session.last_seq)
    Seen.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["project", "session", "user"],
        update_fields=["seq"],
    )


def with_unread(sessions: QuerySet[Session], user) -> QuerySet[Session]:
    """Annotate `unread`: whether messages follow those that `user` has read. False for a session
    that `user` has never opened.
    """
    behind = Seen.objects.filter(session=OuterRef("pk"), user=user, seq__lt=OuterRef("last_seq"))
    return sessions.annotate(unread=Exists(behind))
