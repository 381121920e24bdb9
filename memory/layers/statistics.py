"""Statistics of a project's memory: its growth, the particulars that its entries keep, its cost."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache

from django.db.models import Count, Func, IntegerField, Prefetch, QuerySet, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

from memory.layers import losses
from memory.layers.coverage import active_path, messages_of
from memory.layers.entities import EntityKind
from memory.layers.periods import Granularity
from memory.models import Entry, EntryStatus
from memory.models.entries import CONVERSATION
from projects.models import Project

WEEKS_SHOWN = 26
# The groups of particulars. Each group is a column of the audit report.
GROUPS: Mapping[str, frozenset[EntityKind]] = {
    "identifiers": frozenset({EntityKind.IDENTIFIER, EntityKind.LINK, EntityKind.EMAIL}),
    "dates": frozenset({EntityKind.DATE, EntityKind.TIME}),
    "names": frozenset({EntityKind.NAME}),
    "numbers": frozenset({EntityKind.NUMBER, EntityKind.AMOUNT, EntityKind.PERCENTAGE}),
}
ALL = "all"
_CURRENT = (EntryStatus.LIVE, EntryStatus.ABSORBED, EntryStatus.FADED)


@dataclass(frozen=True)
class WeekStatistics:
    """The number of remembered messages of the week that begins on `monday`."""

    monday: date
    messages: int = 0


@dataclass(frozen=True)
class LayerStatistics:
    """The number of entries in a layer, and the share of particulars of their sources that they
    contain.

    `kept` is None if the share is unknown or the sources contain no particulars.
    """

    granularity: Granularity
    entries: int
    kept: float | None


class MemoryStatistics:
    """The statistics on the overview page of a project."""

    def __init__(self, project: Project, now: datetime | None = None) -> None:
        self.project = project
        self.today = timezone.localdate(now or timezone.now(), project.zone)

    @cached_property
    def weeks(self) -> list[WeekStatistics]:
        """The last `WEEKS_SHOWN` weeks, oldest first, without empty weeks at the beginning."""
        monday = self.today - timedelta(days=self.today.weekday())
        mondays = [monday - timedelta(weeks=back) for back in range(WEEKS_SHOWN - 1, -1, -1)]
        start = datetime.combine(mondays[0], time.min, self.project.zone)
        entries = self.project.entries.filter(granularity=CONVERSATION, last_source_at__gte=start)
        zone = self.project.zone
        rows = entries.order_by().annotate(week=TruncWeek("last_source_at", tzinfo=zone))
        sums = rows.values_list("week").annotate(Sum("message_count"))
        messages = {timezone.localdate(week, zone): count for week, count in sums}
        weeks = [WeekStatistics(monday, messages.get(monday, 0)) for monday in mondays]
        filled = [place for place, week in enumerate(weeks) if week.messages]
        return weeks[min([*filled, WEEKS_SHOWN - 1]) :]

    @cached_property
    def layers(self) -> list[LayerStatistics]:
        """The layers that have entries, youngest first."""
        entries = self.project.entries.filter(state__in=(*_CURRENT, EntryStatus.STALE))
        counts = dict(entries.order_by().values_list("granularity").annotate(Count("pk")))
        kept = kept_by_layer(self.project)
        return [
            LayerStatistics(layer, counts[layer], kept.get(layer))
            for layer in Granularity
            if layer in counts
        ]


class _LossCount(Func):
    """The number of losses in a list, whose last item may be the number of losses not listed."""

    template = (
        "(jsonb_array_length(%(expressions)s) + CASE %(expressions)s->-1->>'kind'"
        f" WHEN '{losses.MORE}' THEN (%(expressions)s->-1->>'text')::int - 1 ELSE 0 END)"
    )
    output_field = IntegerField()


def current_entries(project: Project) -> QuerySet[Entry]:
    return project.entries.filter(state__in=_CURRENT)


def kept_by_layer(project: Project) -> dict[str, float]:
    """Return, by layer, the share of particulars of the sources that the entries contain.

    This is one query over stored audits. A layer whose sources contain no particulars is left out.
    """
    layers = current_entries(project).values("granularity").order_by()
    sums = layers.annotate(held=Sum("particulars"), lost=Sum(_LossCount("losses")))
    return {row["granularity"]: 1 - row["lost"] / row["held"] for row in sums.filter(held__gt=0)}


@dataclass
class ParticularCounts:
    """Numbers of particulars for one layer, by group and for `ALL` groups together.

    `held` is the number of particulars in the sources, `carried` the number that the entries
    contain.
    """

    entries: int = 0
    held: Counter[str] = field(default_factory=Counter)
    carried: Counter[str] = field(default_factory=Counter)

    def share(self, group: str) -> float | None:
        """Return the share that the entries contain; None if the sources have none of the group."""
        return self.carried[group] / self.held[group] if self.held[group] else None

    def add(self, audit: losses.Audit) -> None:
        missing = set(audit.missing)
        self.entries += 1
        for particular in audit.particulars:
            kind = particular.kind
            for group in (ALL, *(name for name, kinds in GROUPS.items() if kind in kinds)):
                self.held[group] += 1
                self.carried[group] += particular not in missing


def particulars_by_layer(project: Project) -> dict[Granularity, ParticularCounts]:
    """Audit all current entries of a project again, except those of files, and return the counts
    by layer, youngest first.

    Takes a few seconds for years of conversations.
    """
    children = project.entries.select_related("session")
    entries = (
        current_entries(project)
        .filter(file=None)
        .select_related("session")
        .order_by("session_id", "pk")
        .prefetch_related(Prefetch("children", children))
    )
    read_path = lru_cache(maxsize=1)(active_path)
    counts = {layer: ParticularCounts() for layer in Granularity}
    for entry in entries.iterator(chunk_size=200):
        if entry.granularity == CONVERSATION:
            messages = messages_of(entry, read_path).values_list("text", flat=True)
            audit = losses.audit_messages(messages, entry.summary)
        else:
            texts = [(child.label, child.summary) for child in entry.children.all()]
            audit = losses.audit(texts, entry.summary)
        counts[entry.layer].add(audit)
    return {layer: count for layer, count in counts.items() if count.entries}
