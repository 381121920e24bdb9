"""Where an entry stands: the digests above it, and what it was made of, down to the message."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Exists, OuterRef

from chat.access import sessions_for
from chat.models import Message
from memory.access import entries_for
from memory.layers.coverage import CONTRIBUTING
from memory.models import Entry
from projects.models import Membership

# Of a digest's sources, over all layers.
ENTRIES_SHOWN = 300
MESSAGES_SHOWN = 500


@dataclass
class Source:
    """An entry that a digest was made of, with its own sources: entries, or messages.

    `readable`: whether the reader may follow it to its chat.
    """

    entry: Entry
    below: list["Source"] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    readable: bool = False


def above(member: Membership, entry: Entry) -> list[Entry]:
    """The digests that speak for `entry`, the nearest first: three at most."""
    chain: list[Entry] = []
    at: Entry | None = entry
    while at is not None and at.parent_id is not None:
        at = entries_for(member).filter(pk=at.parent_id).first()
        if at is not None:
            chain.append(at)
    return chain


def sources(member: Membership, digest: Entry) -> list[Source]:
    """What `digest` was made of, newest first, layer below layer; cut at ENTRIES_SHOWN."""
    return forest(member, [digest])[digest.pk]


def forest(member: Membership, entries: Iterable[Entry]) -> dict[UUID, list[Source]]:
    """What each of `entries` was made of, as `sources` gives it, by id; cut for all together."""
    level = [entry.pk for entry in entries]
    roots: dict[UUID, list[Source]] = {pk: [] for pk in level}
    known: dict[UUID, Source] = {}
    while level and len(known) < ENTRIES_SHOWN:
        rows = entries_for(member).filter(parent__in=level).newest_first()
        found = [Source(entry) for entry in rows[: ENTRIES_SHOWN - len(known)]]
        for source in found:
            parent: UUID = source.entry.parent_id  # type: ignore[assignment]
            (known[parent].below if parent in known else roots[parent]).append(source)
        known |= {source.entry.pk: source for source in found}
        level = [source.entry.pk for source in found]
    _add_messages(member, [one for one in known.values() if one.entry.session_id])
    return roots


def leaves(member: Membership, entries: Iterable[Entry]) -> list[Source]:
    """Conversation entries with their messages."""
    found = [Source(entry) for entry in entries]
    _add_messages(member, found)
    return found


def _add_messages(member: Membership, leaves: Sequence[Source]) -> None:
    wanted = {leaf.entry.session_id for leaf in leaves}
    rows = sessions_for(member.user).filter(project=member.project, pk__in=wanted)
    readable = set(rows.values_list("pk", flat=True))
    shown = [leaf for leaf in leaves if leaf.entry.session_id in readable]
    by_session = _messages(shown)
    for leaf in shown:
        leaf.readable = True
        stretch = range(leaf.entry.first_seq or 0, (leaf.entry.last_seq or 0) + 1)
        leaf.messages = [one for one in by_session[leaf.entry.session_id] if one.seq in stretch]


def _messages(leaves: Iterable[Source]) -> dict[UUID | None, list[Message]]:
    """The first MESSAGES_SHOWN messages that `leaves` were written from, by session."""
    covering = Entry.objects.filter(
        pk__in=[leaf.entry.pk for leaf in leaves],
        session=OuterRef("session"),
        first_seq__lte=OuterRef("seq"),
        last_seq__gte=OuterRef("seq"),
    )
    of_them = Message.objects.filter(
        CONTRIBUTING, Exists(covering), session__in={leaf.entry.session_id for leaf in leaves}
    )
    found: dict[UUID | None, list[Message]] = defaultdict(list)
    for message in of_them.select_related("author").order_by("session", "seq")[:MESSAGES_SHOWN]:
        found[message.session_id].append(message)
    return found
