"""Chats that a project keeps for a time only, and then forgets as if somebody had asked for it.

What is let go is gone from every layer: a summary whose messages are gone could be neither checked
nor written anew, and nothing could be subtracted from it. Whoever wants to keep one pins it, or its
chat. Notes, blocks and facts given by hand were written down to be kept; they stay.
"""

import time
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import (
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
)
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from chat.models import Message, Session
from memory.forgetting import Scope, forget
from memory.models import Entry
from projects.models import Project

# Chats that are found together.
AT_ONCE = 500
# On the record, in words that pages translate.
REASON = gettext_noop("The project keeps chats for a time only.")


def over(days: int | None = None) -> QuerySet[Session]:
    """The chats that are over their project's time, or over so many `days`, by the database's
    clock; the longest silent first.

    A chat and its forks share what they have in common, and go when the last of them is over.
    """
    return (
        Session.objects.chats()
        .standing()
        .filter(last_activity_at__lt=_since(days), pinned=False)
        .exclude(Exists(Entry.objects.filter(session=OuterRef("pk"), pinned=True)))
        .exclude(Exists(_shared("session", "copied_from__session", days)))
        .exclude(Exists(_shared("copied_from__session", "session", days)))
        .exclude(Exists(_shared("session", "copied_from__copies__session", days)))
        .order_by("last_activity_at")
    )


def _since(days: int | None) -> CombinedExpression:
    """The moment before which what was last said is over."""
    kept = F("project__keep_days") if days is None else Value(days)
    length = ExpressionWrapper(kept * Value(timedelta(days=1)), output_field=DurationField())
    return Now() - length


def _shared(here: str, there: str, days: int | None) -> QuerySet[Message]:
    """Messages of the session at `here` that a session at `there`, not over its time, has too."""
    rows = Message.objects.filter(
        project=OuterRef("project"), **{here: OuterRef("pk")}, forgotten_at=None
    )
    # Not “none of them is over”: any that is not keeps it.
    spoken = Q(**{f"{there}__last_activity_at__gte": _since(days)})
    kept = spoken | Q(**{f"{there}__pinned": True})
    return rows.exclude(copied_from=None).filter(kept)


def would_go(project: Project, days: int) -> int:
    """How many chats of `project` would go now if it kept them for so many days."""
    return over(days).filter(project=project).count()


def let_go(project: Project | None = None, seconds: float = float("inf")) -> bool:
    """Has forgotten what is over its time, for at most so many seconds; whether that was all."""
    end = time.monotonic() + seconds
    while found := _some(project):
        for pk, project_id in found:
            if time.monotonic() > end:
                return False
            _forget(pk, project_id)
    return True


def _some(project: Project | None) -> list[tuple[UUID, UUID]]:
    rows = over().filter(project__keep_days__isnull=False)
    if project is not None:
        rows = rows.filter(project=project)
    return list(rows.values_list("pk", "project")[:AT_ONCE])


@transaction.atomic
def _forget(pk: UUID, project_id: UUID) -> None:
    """One chat, unless somebody spoke in it meanwhile, or another process was quicker."""
    # The project first, as whoever forgets does: processes take turns.
    project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
    if project is None:
        return
    session = Session.objects.filter(pk=pk, project=project)
    locked = session.select_for_update().values_list("pk", flat=True)
    if project.keep_days is not None and locked and over().filter(pk=pk).exists():
        forget(project, Scope(session=pk), reason=REASON)
