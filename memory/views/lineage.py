"""The digests above an entry and its sources below, down to the messages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db.models import Exists

from chat.conversations.branches import path_to
from chat.models import Message
from chat.permissions import sessions_for
from memory.layers.coverage import CONTAINS_MESSAGE, CONTRIBUTING
from memory.models import Entry
from memory.models.entries import CONVERSATION
from memory.permissions import entries_for
from projects.models import Membership

# Limits for all layers below a digest together.
MAX_ENTRIES = 300
MAX_MESSAGES = 500


@dataclass
class EntrySource:
    """A source entry of a digest, with its own sources: entries or messages.

    `readable`: the reader may open its chat. `is_cut`: it has more sources than `below`.
    """

    entry: Entry
    below: list["EntrySource"] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    readable: bool = False
    is_cut: bool = False


def ancestors(member: Membership, entry: Entry) -> list[Entry]:
    """Return the digests that contain `entry`, nearest first: at most three."""
    chain: list[Entry] = []
    parent: Entry | None = entry
    while parent is not None and parent.parent_id is not None:
        parent = entries_for(member).filter(pk=parent.parent_id).first()
        if parent is not None:
            chain.append(parent)
    return chain


def add_sources(member: Membership, roots: Iterable[EntrySource]) -> None:
    """Add the sources of digests, newest first, layer below layer.

    At most MAX_ENTRIES sources are added in total.
    """
    level = {root.entry.pk: root for root in roots}
    added: list[EntrySource] = []
    while level:
        left = MAX_ENTRIES - len(added)
        rows = entries_for(member).filter(parent__in=level).newest_first()
        # One more, to know whether sources are missing.
        found = [EntrySource(entry) for entry in rows[: left + 1]]
        sources = found[:left]
        for source in sources:
            level[source.entry.parent_id].below.append(source)  # type: ignore[index]
        if len(found) > left:
            first_missing = found[left].entry.parent_id
            for parent in level.values():
                parent.is_cut = not parent.below or parent.entry.pk == first_missing
        added += sources
        digests = [source for source in sources if source.entry.granularity != CONVERSATION]
        level = {source.entry.pk: source for source in digests}
    _add_messages(member, [source for source in added if source.entry.session_id])


def leaves(member: Membership, entries: Iterable[Entry]) -> list[EntrySource]:
    """Return conversation entries with their messages."""
    sources = [EntrySource(entry) for entry in entries]
    _add_messages(member, sources)
    return sources


def _add_messages(member: Membership, leaves: Sequence[EntrySource]) -> None:
    sessions = {leaf.entry.session_id for leaf in leaves}
    rows = sessions_for(member.user).filter(project=member.project, pk__in=sessions)
    heads = dict(rows.values_list("pk", "head_id"))
    readable = [leaf for leaf in leaves if leaf.entry.session_id in heads]
    by_session = _messages(readable, heads)
    for leaf in readable:
        leaf.readable = True
        seqs = range(leaf.entry.first_seq or 0, (leaf.entry.last_seq or 0) + 1)
        messages = by_session[leaf.entry.session_id]
        leaf.messages = [message for message in messages if message.seq in seqs]


def _messages(
    leaves: Iterable[EntrySource], heads: Mapping[UUID, UUID | None]
) -> dict[UUID | None, list[Message]]:
    """Return the messages that the entries were made from, by session: of the first MAX_MESSAGES,
    those on the active path. `heads` are the last messages of the active paths, by session.
    """
    covering = Entry.objects.filter(CONTAINS_MESSAGE, pk__in=[leaf.entry.pk for leaf in leaves])
    first = Message.objects.filter(CONTRIBUTING, Exists(covering), session__in=heads)
    found = first.order_by("session", "seq").values_list("pk", "session_id")[:MAX_MESSAGES]
    sources: dict[UUID, UUID] = dict(found)
    nodes = (
        Message.objects.filter(session__in=set(sources.values()))
        .order_by("session")
        .values_list("pk", "parent_id", "seq", "session_id", named=True)
    )
    on_path: list[UUID] = []
    for session, group in groupby(nodes.iterator(), attrgetter("session_id")):
        on_path += [node.pk for node in path_to(group, heads[session]) if node.pk in sources]
    rows = Message.objects.filter(pk__in=on_path).select_related("author")
    messages: dict[UUID | None, list[Message]] = defaultdict(list)
    for message in rows.order_by("session", "seq"):
        messages[message.session_id].append(message)
    return messages
