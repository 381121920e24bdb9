"""Pending work: waiting conversations, stale texts, and the daily token allowance.

`memory/models/idle.py` defines when a conversation is idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from chat.permissions import sessions_for
from memory.models import Activity, Cursor, Entry, EntryStatus, Ladder, Nudge
from memory.models.leased import tokens_spent_today
from memory.permissions import entries_for
from projects.models import Membership, Project

MAX_CONVERSATIONS = 50
MAX_REWRITES = 20
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class PendingConversation:
    """A conversation with messages that no entry covers yet.

    `title` is empty if the user may not read the session; `due_at` is None if it is due now.
    """

    cursor: Cursor
    title: str
    due_at: datetime | None


@dataclass(frozen=True)
class DailyAllowance:
    """The number of tokens that models used for memory today. `limit` is None without a limit."""

    spent: int
    limit: int | None
    resumes_at: datetime

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


@dataclass(frozen=True)
class PendingWork:
    """The next work in a project.

    `rewrites` are the first entries to rewrite, `rewrite_count` is the number of all. `ladder` is
    None before the first update of the layers. `is_nudged` is true if the next cycle updates the
    layers.
    """

    waiting: Sequence[PendingConversation]
    rewrites: Sequence[Entry]
    rewrite_count: int
    ladder: Ladder | None
    is_nudged: bool
    allowance: DailyAllowance


def pending_work(member: Membership) -> PendingWork:
    """Return the next work in the member's project, without data that the member may not see."""
    project = member.project
    stale = entries_for(member).filter(state=EntryStatus.STALE)
    return PendingWork(
        waiting=pending_conversations(member.user, project),
        rewrites=list(stale.order_by("pk")[:MAX_REWRITES]),
        rewrite_count=stale.count(),
        ladder=Ladder.objects.filter(project=project).first(),
        is_nudged=Nudge.objects.filter(project=project).exists(),
        allowance=daily_allowance(project),
    )


def count_awaiting_rewrite(act: Activity) -> int:
    """Return how many of the entries in a receipt still wait for a rewrite.

    If the receipt lists only a part of them, all stale entries of the project count, at most the
    number in the receipt. That may be too many.
    """
    # Receipts of earlier versions only list the withheld entries.
    ids = act.receipt.get("rewrites", act.receipt.get("withheld", []))
    total = act.receipt.get("awaiting_rewrite", 0)
    stale = Entry.objects.filter(project=act.project_id, state=EntryStatus.STALE)
    return stale.filter(pk__in=ids).count() if total <= len(ids) else min(stale.count(), total)


def pending_conversations(user, project: Project) -> list[PendingConversation]:
    """Return the conversations that wait for a summary, the next one first."""
    rows = Cursor.objects.waiting().filter(project=project).select_related("session", "project")
    cursors = list(rows.order_by("session__last_activity_at")[:MAX_CONVERSATIONS])
    sessions = sessions_for(user).filter(pk__in=[cursor.pk for cursor in cursors])
    readable = set(sessions.values_list("pk", flat=True))
    now = timezone.now()
    conversations = [
        PendingConversation(
            cursor=cursor,
            title=cursor.session.label if cursor.pk in readable else "",
            due_at=cursor.due_at if cursor.due_at and cursor.due_at > now else None,
        )
        for cursor in cursors
    ]
    return sorted(conversations, key=lambda conversation: conversation.due_at or LONG_AGO)


def daily_allowance(project: Project) -> DailyAllowance:
    """Return today's allowance; the day ends at midnight in the project's time zone."""
    rows = Project.objects.filter(pk=project.pk)
    spent = rows.values_list(tokens_spent_today("pk"), flat=True).get()
    tomorrow = timezone.localdate(timezone=project.zone) + timedelta(days=1)
    midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=project.zone)
    return DailyAllowance(spent, project.memory_daily_tokens, midnight)
