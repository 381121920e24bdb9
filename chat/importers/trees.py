"""Converts conversations that their source stores as trees."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush

from django.utils.translation import gettext_noop as _

from chat.importers.base import (
    ImportedImage,
    ImportedMessage,
    InvalidItemError,
    first_plausible,
    plausible_time,
)
from chat.models import Role


@dataclass(frozen=True)
class TreeNode:
    """A node of the tree. One without visible content is skipped: its parent gets its children."""

    parent: str | None = None
    role: str = Role.USER
    text: str = ""
    at: datetime | None = None
    own: bool = False
    speaker: str = ""
    model: str = ""
    images: tuple[ImportedImage, ...] = ()

    @property
    def is_visible(self) -> bool:
        return bool(self.text.strip() or self.images)


def order_messages(
    nodes: Mapping[str, TreeNode], current: object, start: datetime | None
) -> tuple[list[ImportedMessage], str | None]:
    """Return the visible messages in chronological order, each after its parent, and the key of the
    head.

    The head is `current`, or the nearest visible message above it. A node without a plausible time
    gets the time of its parent. The first node gets `start`, the time of the conversation. A path
    ends at a missing parent or at a cycle. Raises `InvalidItemError` if no time is plausible.
    """
    if nodes and start is None and not any(node.at for node in nodes.values()):
        raise InvalidItemError(_("It has no times."))
    parents = _parents(nodes, current)
    times = {name: at for name, node in nodes.items() if (at := plausible_time(node.at))}
    children: dict[str | None, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        children[parent].append(name)
    positions = {name: position for position, name in enumerate(nodes)}
    # For each node, the nearest visible message on the path down to it.
    visible: dict[str | None, str | None] = {None: None}
    messages: list[ImportedMessage] = []
    queue: list[tuple[datetime, int, str]] = []

    def enqueue(names: Iterable[str], at: datetime) -> None:
        for name in names:
            heappush(queue, (times.get(name, at), positions[name], name))

    enqueue(children[None], first_plausible(start, min(times.values(), default=None)))
    while queue:
        at, _index, name = heappop(queue)
        node, above = nodes[name], visible[parents[name]]
        if node.is_visible:
            fields = vars(node) | {"key": name, "at": at, "parent": above}
            messages.append(ImportedMessage(**fields))
        visible[name] = name if node.is_visible else above
        enqueue(children[name], at)
    # If no message of the active path is visible, the latest message is the head.
    head = visible.get(current) if isinstance(current, str) else None
    return messages, head or (messages[-1].key if messages else None)


def _parents(nodes: Mapping[str, TreeNode], current: object) -> dict[str, str | None]:
    """Return the parent of each node. Cycles are broken, but not on the path to `current`."""
    parents: dict[str, str | None] = {}
    for start in (current, *nodes):
        path = set()
        name = start if isinstance(start, str) and start in nodes else None
        while name is not None and name not in parents:
            path.add(name)
            parent = nodes[name].parent
            parents[name] = parent if parent in nodes and parent not in path else None
            name = parents[name]
    return parents
