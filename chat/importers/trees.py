"""Conversations that their source keeps as a tree, laid out as ours are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush

from chat.importers.base import ImportedMessage, Unusable
from chat.models import Role


@dataclass(frozen=True)
class Node:
    """One place in the tree. One without text is not shown: what follows it follows its parent."""

    parent: str | None = None
    role: str = Role.USER
    text: str = ""
    at: datetime | None = None
    own: bool = False
    speaker: str = ""
    model: str = ""


def laid_out(
    nodes: Mapping[str, Node], current: object, begun: datetime | None
) -> tuple[list[ImportedMessage], str | None]:
    """The messages that are shown, each after its parent and else by time, and the key of the one
    that ends the path that counts: at `current`, or at the nearest that is shown above it.

    A node without a time has that of the one above, the first that of the conversation, `begun`.
    Parents that are missing, or form a circle, end a path. Raises Unusable when nothing has a time.
    """
    parents = _parents(nodes, current)
    first = begun or min((node.at for node in nodes.values() if node.at), default=None)
    if nodes and first is None:
        raise Unusable("Nothing in it has a time.")
    below: dict[str | None, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        below[parent].append(name)
    places = {name: place for place, name in enumerate(nodes)}
    shown: dict[str | None, str | None] = {None: None}
    messages: list[ImportedMessage] = []
    waiting: list[tuple[datetime, int, str]] = []

    def wait(names: Iterable[str], at: datetime) -> None:
        for name in names:
            heappush(waiting, (nodes[name].at or at, places[name], name))

    if first is not None:
        wait(below[None], first)
    while waiting:
        at, _, name = heappop(waiting)
        node, above = nodes[name], shown[parents[name]]
        if node.text.strip():
            messages.append(_message(name, node, at, above))
        shown[name] = name if node.text.strip() else above
        wait(below[name], at)
    # When the path that counts shows nothing, the latest does.
    head = shown.get(current) if isinstance(current, str) else None
    return messages, head or (messages[-1].key if messages else None)


def _message(name: str, node: Node, at: datetime, above: str | None) -> ImportedMessage:
    return ImportedMessage(
        key=name,
        role=node.role,
        text=node.text,
        at=at,
        speaker=node.speaker,
        own=node.own,
        parent=above,
        model=node.model,
    )


def _parents(nodes: Mapping[str, Node], current: object) -> dict[str, str | None]:
    """The parent of each node, without circles; the path to `current` stays as long as it can."""
    parents: dict[str, str | None] = {}
    for start in (current, *nodes):
        walked = set()
        name = start if isinstance(start, str) and start in nodes else None
        while name is not None and name not in parents:
            walked.add(name)
            parent = nodes[name].parent
            parents[name] = parent if parent in nodes and parent not in walked else None
            name = parents[name]
    return parents
