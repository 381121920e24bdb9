"""The idle rule: when a conversation is due for a summary.

A conversation is due if it had no activity for the project's `idle_minutes`, if it is closed, or if
it has `MAX_UNSUMMARISED_TOKENS` that no entry covers. Messages, edits and reactions are activity.
`CursorQuerySet.pending` applies the rule to all conversations, and names the exceptions.
"""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import ExpressionWrapper, F, Q, Value

from chat.models import Session
from chat.models.sessions import SessionStatus
from memory.models.leased import CLOCK_SLACK
from projects.models import Project

# A conversation with this number of tokens is due even if it is not idle.
MAX_UNSUMMARISED_TOKENS = 4_000


def due_condition(now: datetime) -> Q:
    """Return the condition for cursors whose session is idle, closed or full at `now`."""
    idle_time = ExpressionWrapper(
        F("project__idle_minutes") * Value(timedelta(minutes=1)),
        output_field=models.DurationField(),
    )
    idle = Q(session__last_activity_at__lte=Value(now) - idle_time)
    # A time clearly after `now` was written before the clock was set back.
    idle |= Q(session__last_activity_at__gt=Value(now) + Value(CLOCK_SLACK))
    full = Q(unsummarised_tokens__gte=MAX_UNSUMMARISED_TOKENS)
    closed = Q(session__status=SessionStatus.CLOSED)
    return idle | full | closed


def due_at(session: Session, project: Project, unsummarised_tokens: int) -> datetime | None:
    """Return when the session becomes idle, or None if it is full or closed and thus due now."""
    if unsummarised_tokens >= MAX_UNSUMMARISED_TOKENS or session.status == SessionStatus.CLOSED:
        return None
    return session.last_activity_at + timedelta(minutes=project.idle_minutes)
