"""The plan by which layers settle: what to roll, rewrite and fade next. Values in, values out.

A conversation rolls into its day, a day into its ISO week, a week into its month (DESIGN, "A
cycle"). The caller carries a step out, reads the nodes again and asks again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

from memory.layers.periods import Granularity, ancestor_key

# The database's clock knows nothing shorter.
TICK = timedelta(microseconds=1)
# What stands in the bank, or would if there were room.
VISIBLE = frozenset({"live", "faded"})
# A digest in another state waits: for its moderator (proposed, hidden) or its rewrite (stale).
_OPEN = VISIBLE | {"absorbed"}


@dataclass(frozen=True)
class Thresholds:
    """When layers move (DESIGN, "A cycle").

    `trigger`: the share of the budget that what could be rendered is over; above 1, so that not
    every new entry sets a cycle of model calls going. `ages`: how old a layer has to be to roll
    into the next, by the layer it rolls into.
    """

    trigger: float = 1.25
    ages: Mapping[Granularity, timedelta] = field(
        default_factory=lambda: {
            Granularity.DAY: timedelta(days=1),
            Granularity.WEEK: timedelta(days=7),
            Granularity.MONTH: timedelta(days=30),
        }
    )


USUAL = Thresholds()


@dataclass(frozen=True, slots=True)
class Node:
    """An entry as the plan sees it.

    `tokens` is the length of its rendered item, `parent` the digest it is a child of, and `state`
    one of proposed, live, absorbed, faded, hidden, stale.
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
class Roll:
    """Write the digest of one period from these children, all of them, oldest first.

    `digest` is the entry to write anew, None when the period has none yet.
    """

    granularity: Granularity
    key: str
    digest: UUID | None
    children: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """The rolls into one layer, the oldest period first; no two of them touch the same entry."""

    granularity: Granularity
    rolls: tuple[Roll, ...]


def next_step(
    nodes: Sequence[Node],
    now: datetime,
    budget: int,
    passed: Granularity | None = None,
    thresholds: Thresholds = USUAL,
) -> Step | None:
    """What to roll next at `now`, for a budget in tokens; None when rolling is done.

    `nodes` are all entries of a project, the proposed and hidden too: their periods wait. `passed`
    is the layer of the step taken before in this cycle, None for the first: a cycle begins only
    above the trigger × budget, goes on while above the budget itself, and never tries a layer
    twice. What is over the budget after the last step is for `fade`.
    """
    load = sum(node.tokens for node in nodes if node.state in VISIBLE)
    if load <= budget * (thresholds.trigger if passed is None else 1):
        return None
    for granularity, age in thresholds.ages.items():
        if passed is None or granularity.depth > passed.depth:
            rolls = _rolls(nodes, now - age, granularity)
            if rolls:
                return Step(granularity, rolls)
    return None


def next_look(
    nodes: Iterable[Node], now: datetime, budget: int, thresholds: Thresholds = USUAL
) -> datetime | None:
    """The first moment after `now` at which time alone may let something roll; None for never.

    To be asked when nothing is left to do at `now`.
    """
    visible = [node for node in nodes if node.state in VISIBLE]
    if sum(node.tokens for node in visible) <= budget * thresholds.trigger:
        return None
    moments = (
        node.last_source_at + thresholds.ages[node.granularity.older]
        for node in visible
        if node.granularity.older is not None and not node.pinned
    )
    # One that is exactly as old as it has to be is not older yet.
    return min((at + TICK for at in moments if at >= now), default=None)


def outdated(nodes: Sequence[Node]) -> list[Roll]:
    """The stale digests that can be rewritten now, from their current children, days first.

    One with anything stale below it waits until that is rewritten, so that nothing withheld finds
    its way back upward, and none is written twice; ask again after each round. One without children
    has nothing to be written from and is left to whoever took the last of them.
    """
    children = _children(nodes)
    stale = {node.id for node in nodes if node.state == "stale"}
    waiting = _above(nodes, stale)
    ready = [
        node
        for node in nodes
        if node.id in stale
        and node.granularity != Granularity.CONVERSATION
        and node.id not in waiting
        and children[node.id]
    ]
    ready.sort(key=lambda node: (node.granularity.depth, node.key))
    return [_roll(node.granularity, node.key, node.id, children[node.id]) for node in ready]


def fade(nodes: Iterable[Node], budget: int) -> set[UUID]:
    """The visible nodes that are out of the budget, in tokens, as worked out from nothing.

    Pinned ones are kept. Of the others each is kept, newest first, that still fits beside those
    kept before it; so a single one that is too large does not push all older ones out.
    """
    visible = [node for node in nodes if node.state in VISIBLE]
    left = budget - sum(node.tokens for node in visible if node.pinned)
    out = set()
    for node in newest_first(node for node in visible if not node.pinned):
        if node.tokens <= left:
            left -= node.tokens
        else:
            out.add(node.id)
    return out


class _Dated(Protocol):
    @property
    def id(self) -> UUID: ...
    @property
    def granularity(self) -> Granularity: ...
    @property
    def last_source_at(self) -> datetime: ...


_D = TypeVar("_D", bound=_Dated)


def newest_first(items: Iterable[_D]) -> list[_D]:
    """The order in which room is given: by last source; at the same instant, the finer first."""
    return sorted(
        items,
        key=lambda item: (item.last_source_at, -item.granularity.depth, item.id),
        reverse=True,
    )


def _rolls(nodes: Sequence[Node], before: datetime, into: Granularity) -> tuple[Roll, ...]:
    """The rolls into a layer of what was last said `before` a moment."""
    digests = {node.key: node for node in nodes if node.granularity == into}
    attached = _children(nodes)
    rolls = []
    for key, fresh in sorted(_ripe(nodes, before, into).items()):
        digest = digests.get(key)
        if digest is None:
            rolls.append(_roll(into, key, None, fresh))
        elif digest.state in _OPEN:
            together = {node.id: node for node in [*attached[digest.id], *fresh]}
            rolls.append(_roll(into, key, digest.id, together.values()))
    return tuple(rolls)


def _ripe(nodes: Iterable[Node], before: datetime, into: Granularity) -> dict[str, list[Node]]:
    """What may roll into the layer `into`, by period.

    A period waits as long as anything unpinned in it, down to its conversations, is too fresh or
    stale, so that it is not written today to be written again tomorrow.
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
    return {key: rolled for key, rolled in ripe.items() if key not in waiting}


def _above(nodes: Iterable[Node], ids: Iterable[UUID]) -> set[UUID]:
    """All digests above the nodes `ids`."""
    parents = {node.id: node.parent for node in nodes}
    found: set[UUID] = set()
    for one in ids:
        above = parents[one]
        while above is not None and above not in found:
            found.add(above)
            above = parents.get(above)
    return found


def _children(nodes: Iterable[Node]) -> dict[UUID, list[Node]]:
    """By digest, what it is to be written from. A pinned or hidden entry is nobody's child."""
    children = defaultdict(list)
    for node in nodes:
        if node.parent is not None and node.state in _OPEN and not node.pinned:
            children[node.parent].append(node)
    return children


def _roll(
    granularity: Granularity, key: str, digest: UUID | None, children: Iterable[Node]
) -> Roll:
    ordered = reversed(newest_first(children))
    return Roll(granularity, key, digest, tuple(node.id for node in ordered))
