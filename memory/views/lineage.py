"""The digests above an entry and its sources below, down to the messages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Exists

from chat.models import Message
from chat.permissions import sessions_for
from memory.layers.coverage import CONTAINS_MESSAGE, CONTRIBUTING
from memory.models import Entry
from memory.permissions import entries_for
from projects.models import Membership

# Limits for all layers below a digest together.
MAX_ENTRIES = 300
MAX_MESSAGES = 500


@dataclass
class EntrySource:
    """A source entry of a digest, with its own sources: entries or messages.

    `readable`: the reader may open its chat.
    """

    entry: Entry
    below: list["EntrySource"] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    readable: bool = False


def ancestors(member: Membership, entry: Entry) -> list[Entry]:
    """Return the digests that contain `entry`, nearest first: at most three."""
    chain: list[Entry] = []
    parent: Entry | None = entry
    while parent is not None and parent.parent_id is not None:
        parent = entries_for(member).filter(pk=parent.parent_id).first()
        if parent is not None:
            chain.append(parent)
    return chain


def forest(member: Membership, entries: Iterable[Entry]) -> dict[UUID, list[EntrySource]]:
    """Return the sources of each entry by its id, newest first, layer below layer.

    At most MAX_ENTRIES sources are returned for all entries together.
    """
    level = [entry.pk for entry in entries]
    roots: dict[UUID, list[EntrySource]] = {pk: [] for pk in level}
    by_id: dict[UUID, EntrySource] = {}
    while level and len(by_id) < MAX_ENTRIES:
        rows = entries_for(member).filter(parent__in=level).newest_first()
        sources = [EntrySource(entry) for entry in rows[: MAX_ENTRIES - len(by_id)]]
        for source in sources:
            parent: UUID = source.entry.parent_id  # type: ignore[assignment]
            (by_id[parent].below if parent in by_id else roots[parent]).append(source)
        level = [source.entry.pk for source in sources]
        by_id |= dict(zip(level, sources, strict=True))
    _add_messages(member, [source for source in by_id.values() if source.entry.session_id])
    return roots


def leaves(member: Membership, entries: Iterable[Entry]) -> list[EntrySource]:
    """Return conversation entries with their messages."""
    sources = [EntrySource(entry) for entry in entries]
    _add_messages(member, sources)
    return sources


def _add_messages(member: Membership, leaves: Sequence[EntrySource]) -> None:
    sessions = {leaf.entry.session_id for leaf in leaves}
    rows = sessions_for(member.user).filter(project=member.project, pk__in=sessions)
    readable_ids = set(rows.values_list("pk", flat=True))
    readable = [leaf for leaf in leaves if leaf.entry.session_id in readable_ids]
    by_session = _messages(readable)
    for leaf in readable:
        leaf.readable = True
        seqs = range(leaf.entry.first_seq or 0, (leaf.entry.last_seq or 0) + 1)
        messages = by_session[leaf.entry.session_id]
        leaf.messages = [message for message in messages if message.seq in seqs]


def _messages(leaves: Iterable[EntrySource]) -> dict[UUID | None, list[Message]]:
    """Return the first MAX_MESSAGES messages that the entries cover, by session."""
    entries = [leaf.entry.pk for leaf in leaves]
    covering = Entry.objects.filter(CONTAINS_MESSAGE, pk__in=entries)
    rows = Message.objects.filter(
        CONTRIBUTING, Exists(covering), session__in={leaf.entry.session_id for leaf in leaves}
    )
    messages: dict[UUID | None, list[Message]] = defaultdict(list)
    for message in rows.select_related("author").order_by("session", "seq")[:MAX_MESSAGES]:
        messages[message.session_id].append(message)
    return messages
