"""How much of what was told the digests of each layer carry, by kind, as their texts stand."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Prefetch

from memory.layers import losses
from memory.layers.particulars import Kind
from memory.layers.periods import Granularity
from memory.models import State
from memory.models.entries import CONVERSATION
from projects.models import Project

# What people would ask for, and the kinds of particulars that it is.
GROUPS: Mapping[str, frozenset[Kind]] = {
    "identifiers": frozenset({Kind.IDENTIFIER, Kind.LINK, Kind.EMAIL}),
    "dates": frozenset({Kind.DATE, Kind.TIME}),
    "names": frozenset({Kind.NAME}),
    "numbers": frozenset({Kind.NUMBER, Kind.AMOUNT, Kind.PERCENTAGE}),
}
ALL = "all"


@dataclass
class Kept:
    """Of one layer: how many digests there are, and by group, and for ALL of them, how many
    particulars their children hold and how many of these they carry.
    """

    digests: int = 0
    held: Counter[str] = field(default_factory=Counter)
    carried: Counter[str] = field(default_factory=Counter)

    def share(self, group: str) -> float | None:
        """None where the children hold nothing of it."""
        return self.carried[group] / self.held[group] if self.held[group] else None

    def count(self, audit: losses.Audit) -> None:
        missing = set(audit.missing)
        self.digests += 1
        for one in audit.particulars:
            for group in (_group(one.kind), ALL):
                self.held[group] += 1
                self.carried[group] += one not in missing


def kept_by_kind(project: Project) -> dict[Granularity, Kept]:
    """By layer, the finest first, over digests that are live, absorbed or faded.

    Every one of them is read and audited anew: some seconds for years of talk.
    """
    standing = project.entries.filter(state__in=(State.LIVE, State.ABSORBED, State.FADED))
    digests = standing.exclude(granularity=CONVERSATION).order_by("pk")
    found: dict[Granularity, Kept] = {layer: Kept() for layer in Granularity}
    children = project.entries.select_related("session")
    digests = digests.prefetch_related(Prefetch("children", children))
    for digest in digests.iterator(chunk_size=200):
        told = [(child.label, child.summary) for child in digest.children.all()]
        found[Granularity(digest.granularity)].count(losses.audit(told, digest.summary))
    return {layer: kept for layer, kept in found.items() if kept.digests}


def _group(kind: Kind) -> str:
    return next(group for group, kinds in GROUPS.items() if kind in kinds)
