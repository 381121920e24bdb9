"""What the ladder's plan has to know of a project's layers: what moves, however much has settled.

Nearly all that a long history leaves behind is absorbed, and nothing below a digest that stands as
it is can change the plan.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from django.db.models import Q, QuerySet

from memory.layers.ladder import VISIBLE, Node
from memory.layers.periods import Granularity, parent_key
from memory.models import Entry, State
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


def visible(project: Project) -> list[Node]:
    """What stands in the bank, or would if there were room."""
    return list(_read(project.entries.filter(state__in=VISIBLE)))


def moving(project: Project) -> list[Node]:
    """All that `ladder.outdated` and `ladder.next_step` ask about, for the same plan as that over
    every entry of the project.

    What is visible or stale; the digests of the periods that this belongs to; and the children of
    all digests that may be written for it. As there are four layers, whatever lies between a stale
    entry and a stale digest above it is the parent of the one or a child of the other.
    """
    found = list(_read(project.entries.filter(state__in=[*VISIBLE, State.STALE])))
    wanted = _periods_of(found)
    digests = list(_read(project.entries.filter(wanted))) if wanted else []
    parents = {node.id for node in digests}
    parents |= {node.id for node in found if node.state == State.STALE}
    children = _read(project.entries.filter(parent__in=parents)) if parents else ()
    return list({node.id: node for node in (*found, *digests, *children)}.values())


def _periods_of(nodes: Iterable[Node]) -> Q:
    """The digests, of the next older layer, that `nodes` are or may be told in."""
    keys = defaultdict(set)
    for node in nodes:
        if node.granularity.older is not None:
            keys[node.granularity.older].add(parent_key(node.granularity, node.key))
    wanted = Q()
    for layer, found in keys.items():
        wanted |= Q(granularity=layer, period_key__in=found)
    return wanted


def _read(entries: QuerySet[Entry]) -> Iterator[Node]:
    for pk, layer, *others in entries.values_list(*_COLUMNS):
        yield Node(pk, Granularity(layer), *others)
