"""The plan of the layers: what to roll up and rewrite next. Pure.

Conversations roll up into their day, the entries of a week into their ISO week, and those of a
month into their month. An only entry of a period gets no digest: the layer above takes it as it
is. The caller carries out the plan, reads the nodes again and asks for the next plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from memory.layers.periods import Granularity, ancestor_key

T = TypeVar("T")

# The resolution of the database clock.
TICK = timedelta(microseconds=1)
# The minimum age of an entry to roll up, by the layer that it rolls up into.
AGES: Mapping[Granularity, timedelta] = {
    Granularity.DAY: timedelta(days=1),
    Granularity.WEEK: timedelta(days=7),
    Granularity.MONTH: timedelta(days=30),
}
# The states of entries that are in the bank, or would be if there were room.
VISIBLE = frozenset({"live", "faded"})
# A digest in another state waits for a moderator (proposed, hidden) or for its rewrite (stale).
_OPEN = VISIBLE | {"absorbed"}


@dataclass(frozen=True, slots=True)
class LadderNode:
    """An entry as the plan sees it.

    `tokens` is the length of its rendered item, `parent` the digest that it is a child of, and
    `state` one of proposed, live, absorbed, faded, hidden, stale.
    """

    id: UUID
    granularity: Granularity
    key: str
    tokens: int
    last_source_at: datetime
    state: str
    parent: UUID | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class RollUp:
    """The plan to write the digest of one period from all its `children`, oldest first.

    `digest` is the entry to rewrite, None if the period has none yet.
    """

    granularity: Granularity
    key: str
    digest: UUID | None
    children: tuple[UUID, ...]


def roll_ups(nodes: Sequence[LadderNode], now: datetime, budget: int) -> list[RollUp]:
    """Return the roll-ups into the youngest layer that has any, oldest period first; no two of
    them share an entry.

    `nodes` are all entries of a project, including proposed and hidden entries, whose periods wait.
    Nothing rolls up while the visible entries fit into `budget` tokens.
    """
    if _fits(nodes, budget):
        return []
    plans = (_roll_ups(nodes, now - age, layer) for layer, age in AGES.items())
    return next(filter(None, plans), [])


def next_due_at(nodes: Sequence[LadderNode], now: datetime, budget: int) -> datetime | None:
    """Return the first moment after `now` at which entries become old enough to roll up, or None.

    Call this when nothing is left to do at `now`.
    """
    if _fits(nodes, budget):
        return None
    moments = (
        node.last_source_at + age
        for node in nodes
        if node.state in VISIBLE and not node.pinned
        for layer, age in AGES.items()
        if layer.depth > node.granularity.depth
    )
    # The required age itself is not enough: the entry must be older.
    return min((moment + TICK for moment in moments if moment >= now), default=None)


def _fits(nodes: Iterable[LadderNode], budget: int) -> bool:
    return sum(node.tokens for node in nodes if node.state in VISIBLE) <= budget


def rewrites(nodes: Sequence[LadderNode]) -> list[RollUp]:
    """Return the stale digests that can be rewritten now from their current children, days first.

    A digest above a stale entry waits, so that withheld text cannot return and no digest is written
    twice; ask again after each round. A digest without children cannot be written. The code that
    removes the last child deletes the digest.
    """
    children = _children(nodes)
    parents = {node.id: node.parent for node in nodes}
    stale = {node.id for node in nodes if node.state == "stale"}
    waiting: set[UUID] = set()
    for node_id in stale:
        above = parents[node_id]
        while above is not None and above not in waiting:
            waiting.add(above)
            above = parents.get(above)
    ready = [
        node
        for node in nodes
        if node.id in stale
        and node.granularity != Granularity.CONVERSATION
        and node.id not in waiting
        and children[node.id]
    ]
    ready.sort(key=lambda node: (node.granularity.depth, node.key))
    return [_roll_up(node.granularity, node.key, node.id, children[node.id]) for node in ready]


def newest_first(items: Iterable[T]) -> list[T]:
    """Sort nodes or items of the bank by last source, newest first. At equal times, the younger
    layer comes first.
    """

    def age(item: Any) -> tuple[datetime, int, UUID]:
        return item.last_source_at, -item.granularity.depth, item.id

    return sorted(items, key=age, reverse=True)


def _roll_ups(nodes: Sequence[LadderNode], before: datetime, into: Granularity) -> list[RollUp]:
    """Return the roll-ups into a layer of nodes whose last source is older than `before`."""
    digests = {node.key: node for node in nodes if node.granularity == into}
    attached = _children(nodes)
    rolls = []
    for key, fresh in sorted(_ripe(nodes, before, into).items()):
        digest = digests.get(key)
        if digest is None and len(fresh) > 1:
            rolls.append(_roll_up(into, key, None, fresh))
        elif digest is not None and digest.state in _OPEN:
            children = {node.id: node for node in [*attached[digest.id], *fresh]}
            rolls.append(_roll_up(into, key, digest.id, children.values()))
    return rolls


def _ripe(
    nodes: Sequence[LadderNode], before: datetime, into: Granularity
) -> dict[str, list[LadderNode]]:
    """Return the nodes that may roll up into a layer, by the key of the period.

    A period waits while any unpinned node at any layer in it is too young or stale. Otherwise its
    digest would soon be rewritten. An entry also waits for the digest of its day or week, if there
    is one that cannot take it.
    """
    ripe = defaultdict(list)
    waiting = set()
    digests = {(node.granularity, node.key) for node in nodes}
    for node in nodes:
        if node.pinned or node.granularity.depth >= into.depth:
            continue
        key = ancestor_key(node.granularity, node.key, into)
        fresh = node.last_source_at >= before
        between = [layer for layer in AGES if node.granularity.depth < layer.depth < into.depth]
        if node.state == "stale" or (node.state in VISIBLE and fresh):
            waiting.add(key)
        elif node.state in VISIBLE and not any(
            (layer, ancestor_key(node.granularity, node.key, layer)) in digests for layer in between
        ):
            ripe[key].append(node)
    return {key: group for key, group in ripe.items() if key not in waiting}


def _children(nodes: Iterable[LadderNode]) -> dict[UUID, list[LadderNode]]:
    """Return the children of each digest. A pinned or hidden entry is no child."""
    children = defaultdict(list)
    for node in nodes:
        if node.parent is not None and node.state in _OPEN and not node.pinned:
            children[node.parent].append(node)
    return children


def _roll_up(
    granularity: Granularity, key: str, digest: UUID | None, children: Iterable[LadderNode]
) -> RollUp:
    ordered = reversed(newest_first(children))
    return RollUp(granularity, key, digest, tuple(node.id for node in ordered))
