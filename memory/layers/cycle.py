"""What is due, in one query each; and the loop that does it, behind the beat and the command."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, F, Min, OuterRef, Q, Sum

from memory.layers import bank, conversations, digests
from memory.layers.ladder import AGES, TRIGGER
from memory.layers.periods import Granularity
from memory.models import Cursor, Entry, Ladder, State
from memory.models.entries import CONVERSATION
from projects.models import Project

# One cycle starts at most so much work; the next minute's takes up the rest.
FAN_OUT = 500


def due_sessions(now: datetime, project: Project | None = None) -> list[UUID]:
    """The sessions to summarise at `now`, the longest idle first; at most FAN_OUT."""
    due = Cursor.objects.due(now)
    if project is not None:
        due = due.filter(project=project)
    return list(due.order_by("session__last_activity_at").values_list("pk", flat=True)[:FAN_OUT])


def due_rewrites(project: Project | None = None) -> list[UUID]:
    """The conversation entries whose sources changed, the oldest first; at most FAN_OUT."""
    free = Cursor.objects.unheld().ready().filter(session=OuterRef("session"))
    stale = Entry.objects.filter(
        Exists(free),
        state=State.STALE,
        granularity=CONVERSATION,
        project__memory_enabled=True,
        project__archived_at=None,
    )
    if project is not None:
        stale = stale.filter(project=project)
    return list(stale.order_by("pk").values_list("pk", flat=True)[:FAN_OUT])


def due_projects(now: datetime, project: Project | None = None) -> list[UUID]:
    """The projects whose layers have to move at `now`; at most FAN_OUT.

    Those over 1.25 × budget with something old enough to settle or to fade, those with a digest to
    rewrite, and those in which something faded might fit again.
    """
    busy = Ladder.objects.filter(project=OuterRef("pk")).exclude(
        pk__in=Ladder.objects.unheld().ready()
    )
    live, faded = Q(entries__state=State.LIVE), Q(entries__state=State.FADED)
    projects = Project.objects.filter(memory_enabled=True, archived_at=None).annotate(
        live=Sum("entries__tokens", filter=live, default=0),
        visible=Sum("entries__tokens", filter=live | faded, default=0),
        least_faded=Min("entries__tokens", filter=faded),
    )
    over = Q(visible__gt=F("bank_max_tokens") * TRIGGER) & Exists(
        Entry.objects.in_the_bank().filter(_ripe(now), project=OuterRef("pk"))
    )
    projects = projects.filter(
        over
        | Q(live__gt=F("bank_max_tokens") * TRIGGER)
        | Q(Exists(Entry.objects.rewritable().filter(project=OuterRef("pk"))))
        | Q(least_faded__lte=F("bank_max_tokens") - bank.frame_tokens() - F("live"))
    ).exclude(Exists(busy))
    if project is not None:
        projects = projects.filter(pk=project.pk)
    return list(projects.order_by("pk").values_list("pk", flat=True)[:FAN_OUT])


def _ripe(now: datetime) -> Q:
    """Entries that are old enough at `now` to roll into the next older layer."""
    ripe = Q()
    for into, age in AGES.items():
        ripe |= Q(granularity=list(Granularity)[into.depth - 1], last_source_at__lt=now - age)
    return ripe & Q(pinned=False)


@dataclass
class Report:
    """What one cycle did."""

    summarised: int = 0
    rewritten: int = 0
    settled: int = 0
    failed: int = 0


def run(
    now: datetime,
    project: Project | None = None,
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """One whole cycle in the foreground, as the beat would run it at `now`."""
    report = Report()
    while due := due_sessions(now, project):
        written = 0
        for session_id in due:
            entry = conversations.summarise(session_id, now)
            written += entry is not None
            report.failed += entry is None
            progress(report)
        report.summarised += written
        if not written:
            break
    for entry_id in due_rewrites(project):
        report.rewritten += conversations.rewrite(entry_id, now) is not None
        progress(report)
    for project_id in due_projects(now, project):
        report.settled += digests.settle(project_id, now)
        progress(report)
    return report
