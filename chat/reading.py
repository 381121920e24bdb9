"""What stands around a message for its reader: its versions, and the reactions to it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from chat.compiled import Among, Compiled
from chat.models import Message, Reaction, Seen, Session


@dataclass(frozen=True)
class Given:
    """An emoji under a message: how many gave it, and whether the reader did."""

    emoji: str
    count: int
    mine: bool


@dataclass(frozen=True)
class Company:
    """What stands around a message: its versions, itself among them, and the reactions to it."""

    message: UUID
    siblings: tuple[UUID, ...]
    reactions: tuple[Given, ...]

    @property
    def place(self) -> int:
        """Its number among its siblings, from 1."""
        return self.siblings.index(self.message) + 1

    @property
    def before(self) -> UUID | None:
        return self.siblings[self.place - 2] if self.place > 1 else None

    @property
    def after(self) -> UUID | None:
        return self.siblings[self.place] if self.place < len(self.siblings) else None


def company(messages: Iterable[Message], reader) -> dict[UUID, Company]:
    """What stands around each of `messages`, by id, as the user `reader` sees it: two queries."""
    known = list(messages)
    siblings, reactions = _siblings(known), _reactions(known, reader)
    return {
        message.pk: Company(
            message.pk,
            tuple(pk for pk, stands in siblings[_place(message)] if stands or pk == message.pk),
            tuple(reactions[message.pk]),
        )
        for message in known
    }


def _place(message: Message) -> tuple[UUID, UUID | None, str]:
    return message.session_id, message.parent_id, message.role


def _siblings(messages: list[Message]) -> dict[tuple, list[tuple[UUID, bool]]]:
    """(id, whether it stands) of what shares a place with one of `messages`, in order."""
    parents = [message.parent_id for message in messages if message.parent_id]
    beginnings = [message.session_id for message in messages if not message.parent_id]
    found = defaultdict(list)
    for pk, session, parent, role, deleted_at in _below(parents, beginnings):
        found[session, parent, role].append((pk, deleted_at is None))
    return found


def _rows_below(parents: list[UUID], beginnings: list[UUID]) -> QuerySet:
    begun = Q(Among(F("session"), beginnings), parent=None)
    rows = Message.objects.filter(Q(Among(F("parent"), parents)) | begun).order_by("seq")
    return rows.values_list("pk", "session_id", "parent_id", "role", "deleted_at")


_below = Compiled(_rows_below, list, list)


def _reactions(messages: list[Message], reader) -> dict[UUID, list[Given]]:
    """The emoji under each of `messages`, in the order in which they were first given."""
    by = defaultdict(list)
    for message, emoji, user in _given([message.pk for message in messages]):
        by[message, emoji].append(user)
    found = defaultdict(list)
    mine = getattr(reader, "pk", None)
    for (message, emoji), users in by.items():
        found[message].append(Given(emoji, len(users), mine in users))
    return found


def _rows_given(messages: list[UUID]) -> QuerySet:
    rows = Reaction.objects.filter(Among(F("message"), messages))
    return rows.values_list("message_id", "emoji", "user_id")


_given = Compiled(_rows_given, list)


def see(session: Session, user) -> None:
    """Records that `user` has all of `session` before their eyes."""
    place = Seen(project_id=session.project_id, session=session, user=user, seq=session.last_seq)
    Seen.objects.bulk_create(
        [place],
        update_conflicts=True,
        unique_fields=["project", "session", "user"],
        update_fields=["seq"],
    )


def unread(sessions: QuerySet[Session], user) -> QuerySet[Session]:
    """`sessions` with `unread`: whether more was said since `user` had it before their eyes."""
    before = Seen.objects.filter(session=OuterRef("pk"), user=user, seq__lt=OuterRef("last_seq"))
    return sessions.annotate(unread=Exists(before))
