"""The plan of the layers: what to roll up and rewrite next. Pure.

Conversations roll up into their day, the entries of a week into their ISO week, and the entries of
a month into their month. If a period has only one entry, it gets no digest, and the layer above
includes the entry directly. The caller carries out the plan, reads the nodes again and asks for the
next plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from memory.layers.periods import Granularity, ancestor_key

T = TypeVar("T")
# A layer and the key of one of its periods.
Period = tuple[Granularity, str]

# The resolution of the database clock; the smallest difference between two times.
TICK = timedelta(microseconds=1)
# The minimum age of an entry that is rolled up, by the layer of the digest.
AGES: Mapping[Granularity, timedelta] = {
    Granularity.DAY: timedelta(days=1),
    Granularity.WEEK: timedelta(days=7),
    Granularity.MONTH: timedelta(days=30),
}
# The states of entries whose tokens count towards the budget, and that can be rolled up.
VISIBLE = frozenset({"live", "faded"})
# The states of entries that wait neither for a moderator (proposed, hidden) nor for their rewrite
# (stale).
_USABLE = VISIBLE | {"absorbed"}


@dataclass(frozen=True, slots=True)
class LadderNode:
    """The columns of an entry that the plan needs.

    `tokens` is the length of its rendered item, `parent` the id of the digest above it. `state` is
    proposed, live, absorbed, faded, hidden or stale.
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
    """A planned digest of one period, to be written from all its `children`, oldest first.

    `digest` is the id of the entry to rewrite, or None if the period has no digest yet.
    """

    granularity: Granularity
    key: str
    digest: UUID | None
    children: tuple[UUID, ...]

    @property
    def period(self) -> Period:
        return self.granularity, self.key


def roll_ups(
    nodes: Sequence[LadderNode], now: datetime, budget: int, failed: Set[Period] = frozenset()
) -> list[RollUp]:
    """Return the roll-ups into the finest layer that has any, oldest period first. No entry is in
    two of them. Nothing is rolled up into the `failed` periods and the periods that contain them.

    `nodes` are the entries that can affect the plan. They must include proposed and hidden digests,
    because nothing is rolled up into their periods. The result is empty while the visible entries
    fit into `budget` tokens.
    """
    if _fits(nodes, budget):
        return []
    plans = (_roll_ups(nodes, now - age, layer, failed) for layer, age in AGES.items())
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
    # An entry must be older than the required age, so add the smallest difference.
    return min((moment + TICK for moment in moments if moment >= now), default=None)


def _fits(nodes: Iterable[LadderNode], budget: int) -> bool:
    return sum(node.tokens for node in nodes if node.state in VISIBLE) <= budget


def rewrites(nodes: Sequence[LadderNode]) -> list[RollUp]:
    """Return the stale digests that can be rewritten now from their current children, days first.

    A digest above a stale entry waits, so that withheld text cannot return and no digest is written
    twice. Call this again after each round. A digest without children cannot be written. Forgetting
    or `LayerUpdate.dissolve` deletes it.
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
    """Sort nodes or bank items by last source, newest first, then by layer, finest first."""

    def age(item: Any) -> tuple[datetime, int, UUID]:
        return item.last_source_at, -item.granularity.depth, item.id

    return sorted(items, key=age, reverse=True)


def _roll_ups(
    nodes: Sequence[LadderNode], before: datetime, into: Granularity, failed: Set[Period]
) -> list[RollUp]:
    """Return the roll-ups into the layer `into` of nodes with a last source before `before`."""
    digests = {node.key: node for node in nodes if node.granularity == into}
    attached = _children(nodes)
    rolls = []
    for key, ripe in sorted(_ripe(nodes, before, into, failed).items()):
        digest = digests.get(key)
        if digest is None and len(ripe) > 1:
            rolls.append(_roll_up(into, key, None, ripe))
        elif digest is not None and digest.state in _USABLE:
            children = {node.id: node for node in [*attached[digest.id], *ripe]}
            rolls.append(_roll_up(into, key, digest.id, children.values()))
    return rolls


def _ripe(
    nodes: Sequence[LadderNode], before: datetime, into: Granularity, failed: Set[Period]
) -> dict[str, list[LadderNode]]:
    """Return the nodes that may be rolled up into the layer `into`, by the key of their period.

    A period waits while an unpinned node in it, of any layer below, is too young, stale or in a
    failed period. Otherwise its digest would soon be rewritten. If a layer between an entry and
    `into` has a digest for the entry's period, the entry waits until that digest includes it.
    """
    ripe = defaultdict(list)
    waiting = {key for layer, key in failed if layer == into}
    digests = {(node.granularity, node.key) for node in nodes}
    for node in nodes:
        if node.pinned or node.granularity.depth >= into.depth:
            continue
        key = ancestor_key(node.granularity, node.key, into)
        is_young = node.last_source_at >= before
        between = {
            (layer, ancestor_key(node.granularity, node.key, layer))
            for layer in AGES
            if node.granularity.depth < layer.depth < into.depth
        }
        must_wait = is_young or not between.isdisjoint(failed)
        if node.state == "stale" or (node.state in VISIBLE and must_wait):
            waiting.add(key)
        elif node.state in VISIBLE and between.isdisjoint(digests):
            ripe[key].append(node)
    return {key: group for key, group in ripe.items() if key not in waiting}


def _children(nodes: Iterable[LadderNode]) -> dict[UUID, list[LadderNode]]:
    """Return the children of each digest, without pinned, hidden, proposed and stale entries."""
    children = defaultdict(list)
    for node in nodes:
        if node.parent is not None and node.state in _USABLE and not node.pinned:
            children[node.parent].append(node)
    return children


def _roll_up(
    granularity: Granularity, key: str, digest: UUID | None, children: Iterable[LadderNode]
) -> RollUp:
    ordered = reversed(newest_first(children))
    return RollUp(granularity, key, digest, tuple(node.id for node in ordered))
