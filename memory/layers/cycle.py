"""What is due, in one query each; and the loop that does it, behind the beat and the command."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, F, Min, OuterRef, Q, Sum

from memory.layers import bank, conversations, digests
from memory.layers.ladder import TRIGGER
from memory.models import Cursor, Entry, Ladder, State
from projects.models import Project

# One cycle starts at most so much work; the next minute's takes up the rest.
FAN_OUT = 500


def due_sessions(now: datetime, project: Project | None = None) -> list[UUID]:
    """The sessions to summarise at `now`, the longest idle first; at most FAN_OUT."""
    due = Cursor.objects.due(now)
    if project is not None:
        due = due.filter(project=project)
    return list(due.order_by("session__last_activity_at").values_list("pk", flat=True)[:FAN_OUT])


def due_projects(project: Project | None = None) -> list[UUID]:
    """The projects whose layers have to move; at most FAN_OUT.

    Those over 1.25 × budget, those with a digest to rewrite, and those in which something faded
    might fit again.
    """
    busy = Ladder.objects.filter(project=OuterRef("pk")).exclude(
        pk__in=Ladder.objects.unheld().ready()
    )
    live = Q(entries__state=State.LIVE)
    projects = Project.objects.filter(memory_enabled=True, archived_at=None).annotate(
        live=Sum("entries__tokens", filter=live, default=0),
        least_faded=Min("entries__tokens", filter=Q(entries__state=State.FADED)),
    )
    projects = projects.filter(
        Q(live__gt=F("bank_max_tokens") * TRIGGER)
        | Q(Exists(Entry.objects.rewritable().filter(project=OuterRef("pk"))))
        | Q(least_faded__lte=F("bank_max_tokens") - bank.frame_tokens() - F("live"))
    ).exclude(Exists(busy))
    if project is not None:
        projects = projects.filter(pk=project.pk)
    return list(projects.order_by("pk").values_list("pk", flat=True)[:FAN_OUT])


@dataclass
class Report:
    """What one cycle did."""

    summarised: int = 0
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
        for session_id in due:
            entry = conversations.summarise(session_id, now)
            report.summarised += entry is not None
            report.failed += entry is None
            progress(report)
        if len(due) < FAN_OUT:
            break
    for project_id in due_projects(project):
        report.settled += digests.settle(project_id, now)
        progress(report)
    return report
