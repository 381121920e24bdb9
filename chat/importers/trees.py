"""Conversations that their source keeps as a tree, laid out as ours are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush

from chat.importers.base import ImportedImage, ImportedMessage, Unusable
from chat.importers.times import nearest, trusted
from chat.models import Role


@dataclass(frozen=True)
class Node:
    """One place in the tree. One that shows nothing is left out: what follows it follows its
    parent.
    """

    parent: str | None = None
    role: str = Role.USER
    text: str = ""
    at: datetime | None = None
    own: bool = False
    speaker: str = ""
    model: str = ""
    images: tuple[ImportedImage, ...] = ()

    @property
    def shows(self) -> bool:
        return bool(self.text.strip() or self.images)


def laid_out(
    nodes: Mapping[str, Node], current: object, begun: datetime | None
) -> tuple[list[ImportedMessage], str | None]:
    """The messages that are shown, each after its parent and else by time, and the key of the one
    that ends the path that counts: at `current`, or at the nearest that is shown above it.

    A node without a time that can be trusted has that of the one above, the first that of the
    conversation, `begun`. Parents that are missing, or form a circle, end a path. Raises Unusable
    when nothing has a time.
    """
    if nodes and begun is None and not any(node.at for node in nodes.values()):
        raise Unusable("Nothing in it has a time.")
    parents = _parents(nodes, current)
    times = {name: at for name, node in nodes.items() if (at := trusted(node.at))}
    below: dict[str | None, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        below[parent].append(name)
    places = {name: place for place, name in enumerate(nodes)}
    shown: dict[str | None, str | None] = {None: None}
    messages: list[ImportedMessage] = []
    waiting: list[tuple[datetime, int, str]] = []

    def wait(names: Iterable[str], at: datetime) -> None:
        for name in names:
            heappush(waiting, (times.get(name, at), places[name], name))

    wait(below[None], nearest(begun, min(times.values(), default=None)))
    while waiting:
        at, _, name = heappop(waiting)
        node, above = nodes[name], shown[parents[name]]
        if node.shows:
            messages.append(_message(name, node, at, above))
        shown[name] = name if node.shows else above
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
        images=node.images,
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
