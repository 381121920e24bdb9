"""Retention: forget chats that are older than the retention period of their project.

Such a chat is deleted with everything made from it, in every layer. Its summary is deleted too,
because a summary without messages can be neither checked nor rewritten. A chat is kept if it is
pinned or if one of its summaries is pinned. Notes, blocks and facts that were written by hand are
kept.
"""

import logging
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
from memory.forgetting.scope import ForgetScope
from memory.forgetting.service import forget
from memory.models import Entry
from projects.models import Project

log = logging.getLogger(__name__)

# The number of expired sessions that are read at once.
BATCH_SIZE = 500
# The reason in the activity log. Pages translate it.
REASON = gettext_noop("The project keeps chats for a limited time.")


def expired_sessions(days: int | None = None) -> QuerySet[Session]:
    """Return the chats without activity for more than `days`, the longest inactive first. Pinned
    chats and chats with a pinned summary are left out.

    By default, `days` is the retention period of each project. The clock is that of the database.

    A chat and its forks share messages, so none of them expires before all of them do.
    """
    return (
        Session.objects.chats()
        .not_deleted()
        .filter(last_activity_at__lt=cutoff(days), pinned=False)
        .exclude(Exists(Entry.objects.filter(session=OuterRef("pk"), pinned=True)))
        .exclude(Exists(shared_messages("session", "copied_from__session", days)))
        .exclude(Exists(shared_messages("copied_from__session", "session", days)))
        .exclude(Exists(shared_messages("session", "copied_from__copies__session", days)))
        .order_by("last_activity_at")
    )


def cutoff(days: int | None) -> CombinedExpression:
    """Return a query expression: chats without activity since this time have expired."""
    kept = F("project__keep_days") if days is None else Value(days)
    length = ExpressionWrapper(kept * Value(timedelta(days=1)), output_field=DurationField())
    return Now() - length


def shared_messages(path: str, other: str, days: int | None) -> QuerySet[Message]:
    """Return the messages of a session that also belong to another session, which is kept.

    `path` and `other` are the lookup paths from a message to the two sessions.
    """
    rows = Message.objects.filter(
        project=OuterRef("project"), **{path: OuterRef("pk")}, forgotten_at=None
    )
    # Not a negated condition, because one kept session among several is enough.
    active = Q(**{f"{other}__last_activity_at__gte": cutoff(days)})
    summaries = Entry.objects.filter(project=OuterRef("project"), session=OuterRef(other))
    kept = active | Q(**{f"{other}__pinned": True}) | Exists(summaries.filter(pinned=True))
    return rows.exclude(copied_from=None).filter(kept)


def count_expired(project: Project, days: int) -> int:
    """Return the number of chats of `project` that a retention of `days` would delete now."""
    return expired_sessions(days).filter(project=project).count()


def forget_expired(seconds: float = float("inf")) -> bool:
    """Forget the expired chats. Return False if `seconds` were not enough.

    A chat that cannot be forgotten is left to the next run.
    """
    end = time.monotonic() + seconds
    rows = expired_sessions().filter(project__keep_days__isnull=False)
    failed: list[UUID] = []
    while batch := list(rows.exclude(pk__in=failed).values_list("pk", "project")[:BATCH_SIZE]):
        for pk, project_id in batch:
            if time.monotonic() > end:
                return False
            try:
                forget_session_if_expired(pk, project_id)
            except Exception:
                # Any error of one chat would stop all chats after it at each run.
                log.exception("retention_failed session=%s", pk)
                failed.append(pk)
    return True


@transaction.atomic
def forget_session_if_expired(pk: UUID, project_id: UUID) -> None:
    """Forget one chat, unless somebody has written in it or another process has forgotten it."""
    # Lock the project first, as every forget request does, so that requests run one by one.
    project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
    if project is None:
        return
    session = Session.objects.filter(pk=pk, project=project)
    locked = session.select_for_update().values_list("pk", flat=True)
    if project.keep_days is not None and locked and expired_sessions().filter(pk=pk).exists():
        forget(project, ForgetScope(session=pk), reason=REASON)
