"""The plan of the layers: what to roll up and rewrite next. Pure.

A conversation rolls up into its day, a day into its ISO week, a week into its month. The caller
carries out a step, reads the nodes again and asks for the next step.
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
# The states of entries that are in the bank, or would be if there were room.
VISIBLE = frozenset({"live", "faded"})
# A digest in another state waits for a moderator (proposed, hidden) or for its rewrite (stale).
_OPEN = VISIBLE | {"absorbed"}


@dataclass(frozen=True)
class Thresholds:
    """When layers roll up.

    `trigger` is the share of the budget that the visible entries must exceed. It is above 1, so
    that not every new entry starts a series of model calls. `ages` is the minimum age of an entry
    to roll up, by the layer that it rolls up into.
    """

    trigger: float
    ages: Mapping[Granularity, timedelta]


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


@dataclass(frozen=True, slots=True)
class RollUpStep:
    """The roll-ups into one layer, oldest period first; no two of them share an entry."""

    granularity: Granularity
    rolls: tuple[RollUp, ...]


def next_step(
    nodes: Sequence[LadderNode],
    now: datetime,
    budget: int,
    passed: Granularity | None = None,
    *,
    thresholds: Thresholds,
) -> RollUpStep | None:
    """Return the next roll-ups at `now` for a budget in tokens; None when no more are needed.

    `nodes` are all entries of a project, including proposed and hidden entries, whose periods wait.
    `passed` is the layer of the previous step in this cycle. The first step is taken only above
    trigger × budget, later steps above the budget itself. Each layer is tried once. What is over
    the budget after the last step shows fewer lines (`memory.layers.filling`).
    """
    visible_tokens = sum(node.tokens for node in nodes if node.state in VISIBLE)
    if visible_tokens <= budget * (thresholds.trigger if passed is None else 1):
        return None
    for granularity, age in thresholds.ages.items():
        if passed is None or granularity.depth > passed.depth:
            rolls = _roll_ups(nodes, now - age, granularity)
            if rolls:
                return RollUpStep(granularity, rolls)
    return None


def next_due_at(
    nodes: Iterable[LadderNode], now: datetime, budget: int, thresholds: Thresholds
) -> datetime | None:
    """Return the first moment after `now` at which entries become old enough to roll up, or None.

    Call this when nothing is left to do at `now`.
    """
    visible = [node for node in nodes if node.state in VISIBLE]
    if sum(node.tokens for node in visible) <= budget * thresholds.trigger:
        return None
    moments = (
        node.last_source_at + thresholds.ages[node.granularity.older]
        for node in visible
        if node.granularity.older is not None and not node.pinned
    )
    # The required age itself is not enough: the entry must be older.
    return min((moment + TICK for moment in moments if moment >= now), default=None)


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


def _roll_ups(
    nodes: Sequence[LadderNode], before: datetime, into: Granularity
) -> tuple[RollUp, ...]:
    """Return the roll-ups into a layer of nodes whose last source is older than `before`."""
    digests = {node.key: node for node in nodes if node.granularity == into}
    attached = _children(nodes)
    rolls = []
    for key, fresh in sorted(_ripe(nodes, before, into).items()):
        digest = digests.get(key)
        if digest is None:
            rolls.append(_roll_up(into, key, None, fresh))
        elif digest.state in _OPEN:
            children = {node.id: node for node in [*attached[digest.id], *fresh]}
            rolls.append(_roll_up(into, key, digest.id, children.values()))
    return tuple(rolls)


def _ripe(
    nodes: Iterable[LadderNode], before: datetime, into: Granularity
) -> dict[str, list[LadderNode]]:
    """Return the nodes that may roll up into a layer, by the key of the period.

    A period waits while any unpinned node at any layer in it is too young or stale. Otherwise its
    digest would soon be rewritten.
    """
    ripe = defaultdict(list)
    waiting = set()
    for node in nodes:
        if node.pinned or node.granularity.depth >= into.depth:
            continue
        key = ancestor_key(node.granularity, node.key, into)
        fresh = node.last_source_at >= before
        if node.state == "stale" or (node.state in VISIBLE and fresh):
            waiting.add(key)
        elif node.state in VISIBLE and node.granularity.older == into:
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
