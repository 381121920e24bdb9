"""Reads, with few queries, the entries that the plan of the layers needs.

Most entries of a long history are absorbed, and entries below an unchanged digest cannot change the
plan. Therefore the number of rows does not grow with the history.
"""

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from memory.layers.ladder import AGES, VISIBLE, LadderNode
from memory.layers.periods import Granularity, ancestor_key
from memory.models import Entry, EntryStatus
from projects.models import Project

_COLUMNS = (
    "id",
    "granularity",
    "period_key",
    "tokens",
    "last_source_at",
    "state",
    "parent",
    "pinned",
)


def visible_nodes(project: Project) -> list[LadderNode]:
    """Return the entries that are in the bank or would be if the budget were large enough."""
    return list(_read(project.entries.filter(state__in=VISIBLE)))


def plannable_nodes(project: Project) -> list[LadderNode]:
    """Return all nodes that can affect the plan. Other entries of the project would not change it.

    These are the visible and stale entries, the digests of their periods, and the children of all
    digests that may be written. Because there are four layers, an entry between a stale entry and a
    stale digest is either the parent of the former or a child of the latter.
    """
    nodes = list(_read(project.entries.filter(state__in=[*VISIBLE, EntryStatus.STALE])))
    periods = Q()
    for layer in AGES:
        below = (node for node in nodes if node.granularity.depth < layer.depth)
        keys = {ancestor_key(node.granularity, node.key, layer) for node in below}
        periods |= Q(granularity=layer, period_key__in=keys)
    digests = list(_read(project.entries.filter(periods)))
    parents = {node.id for node in digests}
    parents |= {node.id for node in nodes if node.state == EntryStatus.STALE}
    children = _read(project.entries.filter(parent__in=parents)) if parents else ()
    return list({node.id: node for node in (*nodes, *digests, *children)}.values())


def _read(entries: QuerySet[Entry]) -> Iterator[LadderNode]:
    for pk, layer, *columns in entries.values_list(*_COLUMNS):
        yield LadderNode(pk, Granularity(layer), *columns)
