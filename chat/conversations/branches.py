"""The path that counts through a conversation's tree of messages."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID


class Node(Protocol):
    @property
    def pk(self) -> UUID: ...
    @property
    def parent_id(self) -> UUID | None: ...


N = TypeVar("N", bound=Node)


def path_to(messages: Iterable[N], head: UUID | None) -> list[N]:
    """The messages from the first one down to `head`, by parent; empty when `head` is None.

    A parent that is not among `messages` ends the walk, so a part of a conversation gives the
    part of the path that lies in it.
    """
    by_id = {message.pk: message for message in messages}
    path: list[N] = []
    while head is not None and head in by_id:
        message = by_id.pop(head)
        path.append(message)
        head = message.parent_id
    path.reverse()
    return path


def moved(messages: Sequence[Node], before: UUID | None, after: UUID | None) -> set[UUID]:
    """The messages that only one of two paths goes through, as the end of the path moves."""
    left, joined = ({one.pk for one in path_to(messages, head)} for head in (before, after))
    return left ^ joined


class Placed(Node, Protocol):
    @property
    def seq(self) -> int: ...


def latest_leaf(messages: Iterable[Placed], start: UUID) -> UUID:
    """The end of the branch below `start` that was continued last: by turns the latest child."""
    latest: dict[UUID | None, Placed] = {}
    for message in messages:
        known = latest.get(message.parent_id)
        if known is None or known.seq < message.seq:
            latest[message.parent_id] = message
    seen = {start}
    while start in latest and latest[start].pk not in seen:
        start = latest[start].pk
        seen.add(start)
    return start
