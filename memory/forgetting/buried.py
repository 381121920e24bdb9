"""What tombstones name, as a wish to forget it once more."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from memory.models import Grave


@dataclass(frozen=True)
class Buried:
    """Ids in one project. `unkept` are messages that stay and that memory keeps nothing of.

    Of `user` goes what they left beside their words: reactions, images not sent, what they wrote
    into entries.
    """

    messages: frozenset[UUID] = frozenset()
    unkept: frozenset[UUID] = frozenset()
    sessions: frozenset[UUID] = frozenset()
    entries: frozenset[UUID] = frozenset()
    blocks: frozenset[UUID] = frozenset()
    facts: frozenset[UUID] = frozenset()
    uploads: frozenset[UUID] = frozenset()
    user: int | None = None

    def __bool__(self) -> bool:
        return self != Buried()


def named_by(graves: Iterable[tuple[str, str]]) -> Buried:
    """What these kinds and subjects name by an id; of users nothing."""
    told = list(graves)

    def named(wanted: Grave) -> frozenset[UUID]:
        return frozenset(UUID(subject) for kind, subject in told if kind == wanted)

    return Buried(
        messages=named(Grave.MESSAGE),
        unkept=named(Grave.UNKEPT),
        sessions=named(Grave.SESSION),
        entries=named(Grave.ENTRY),
        blocks=named(Grave.BLOCK),
        facts=named(Grave.RECORD),
        uploads=named(Grave.UPLOAD),
    )


def mark_of_user(user: int, at: str) -> str:
    """How the grave of what `user` left is called: there may be one each time."""
    return f"{user}@{at}"


def user_of(subject: str) -> int:
    return int(subject.partition("@")[0])
