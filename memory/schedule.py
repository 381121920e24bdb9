"""What memory does next, and when: what waits, what failed and why, what is spent of today."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from chat.access import sessions_for
from memory.access import entries_for
from memory.models import Activity, Cursor, Entry, Ladder, Nudge, State
from memory.models.calls import spent_today
from projects.models import Membership, Project

WAITING_SHOWN = 50
REWRITES_SHOWN = 20
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Waiting:
    """A conversation that no entry covers yet. `title` is empty when the reader may not know it.

    `due_at` is None when it is due now.
    """

    cursor: Cursor
    title: str
    due_at: datetime | None


@dataclass(frozen=True)
class Allowance:
    """Tokens that memory's models took today, of those they may; `limit` None: no limit."""

    spent: int
    limit: int | None
    resumes_at: datetime

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


@dataclass(frozen=True)
class Due:
    """`rewrites` are the first of `rewrite_count` texts that wait to be written anew. `ladder` is
    None before the layers were first looked through; `is_nudged`: they are at the next cycle.
    """

    waiting: Sequence[Waiting]
    rewrites: Sequence[Entry]
    rewrite_count: int
    ladder: Ladder | None
    is_nudged: bool
    allowance: Allowance


def due(member: Membership) -> Due:
    """What is due next in the member's project, as they may know it."""
    project = member.project
    stale = entries_for(member).filter(state=State.STALE)
    return Due(
        waiting=waiting(member.user, project),
        rewrites=list(stale.order_by("pk")[:REWRITES_SHOWN]),
        rewrite_count=stale.count(),
        ladder=Ladder.objects.filter(project=project).first(),
        is_nudged=Nudge.objects.filter(project=project).exists(),
        allowance=allowance(project),
    )


def still_awaiting(act: Activity) -> int:
    """How many of the texts that a forgetting emptied still wait to be written anew."""
    emptied = Entry.objects.filter(project=act.project_id, pk__in=act.receipt.get("withheld", []))
    return emptied.filter(state=State.STALE).count()


def waiting(user, project: Project) -> list[Waiting]:
    """The conversations to be summarised, the next one first."""
    cursors = Cursor.objects.waiting().filter(project=project).select_related("session", "project")
    soonest = list(cursors.order_by("session__last_activity_at")[:WAITING_SHOWN])
    readable = set(
        sessions_for(user).filter(pk__in=[one.pk for one in soonest]).values_list("pk", flat=True)
    )
    now = timezone.now()
    found = [
        Waiting(
            cursor=cursor,
            title=cursor.session.label if cursor.pk in readable else "",
            due_at=cursor.due_at if cursor.due_at and cursor.due_at > now else None,
        )
        for cursor in soonest
    ]
    return sorted(found, key=lambda one: one.due_at or LONG_AGO)


def allowance(project: Project) -> Allowance:
    """Today ends at midnight in the project's zone."""
    spent = Project.objects.filter(pk=project.pk).values_list(spent_today("pk"), flat=True).get()
    tomorrow = timezone.localdate(timezone=project.zone) + timedelta(days=1)
    midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=project.zone)
    return Allowance(spent, project.memory_daily_tokens, midnight)
