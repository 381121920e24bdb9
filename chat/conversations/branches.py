"""Paths through the tree of messages of a conversation. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID


class MessageNode(Protocol):
    @property
    def pk(self) -> UUID: ...
    @property
    def parent_id(self) -> UUID | None: ...
    @property
    def seq(self) -> int: ...


N = TypeVar("N", bound=MessageNode)


def path_to(messages: Iterable[N], head: UUID | None) -> list[N]:
    """Return the messages from the first one down to `head`, following parents.

    Empty without a head. If `messages` are only part of a conversation, the path begins with the
    first message whose parent is not among them.
    """
    by_id = {message.pk: message for message in messages}
    path: list[N] = []
    while head is not None and head in by_id:
        message = by_id.pop(head)
        path.append(message)
        head = message.parent_id
    path.reverse()
    return path


def path_difference(
    messages: Sequence[MessageNode], before: UUID | None, after: UUID | None
) -> set[UUID]:
    """Return the ids of the messages that are on one of two paths, but not on both.

    `before` and `after` are the last messages of the two paths.
    """
    old, new = ({message.pk for message in path_to(messages, head)} for head in (before, after))
    return old ^ new


def latest_leaf(messages: Iterable[MessageNode], start: UUID) -> UUID:
    """Return the last message below `start`, following the latest child at each step."""
    latest: dict[UUID | None, MessageNode] = {}
    for message in messages:
        known = latest.get(message.parent_id)
        if known is None or known.seq < message.seq:
            latest[message.parent_id] = message
    seen = {start}
    while start in latest and latest[start].pk not in seen:
        start = latest[start].pk
        seen.add(start)
    return start
