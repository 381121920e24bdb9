"""How a conversation is kept: its settings, its removal, and what is told of it in lists."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.module_loading import import_string

from chat.models import Message, Role, Session
from chat.models.sessions import HISTORY_LIMITS, SessionStatus, Visibility
from chat.signals import (
    session_closed,
    session_deleted,
    session_expired,
    session_made_private,
    session_restored,
)
from projects.models import Project


class Stale(Exception):
    """The session is not at the version that was read any more."""


# How long a deleted session can be brought back.
UNDO_WINDOW = timedelta(minutes=10)


def clamped(limit: int | None) -> int | None:
    """A history limit moved into its range; None, the project's, stays."""
    least, most = HISTORY_LIMITS
    return limit if limit is None else min(max(limit, least), most)


def create_session(project, creator, **settings) -> Session:
    """A new session; `settings` as for `update_session`."""
    session = Session(project=project, creator=creator)
    _apply(session, settings)
    session.save(force_insert=True)
    return session


@transaction.atomic
def update_session(session: Session, at_version: int | None = None, **settings) -> Session:
    """Changes how `session` is kept, and its version, if anything differs; tells of its closing.

    With `at_version`, only if the session is still at it. Raises Stale.

    `settings` are fields of Session, and `archived`, a bool. A title given here is by hand, and
    stays; an empty one may be made anew.
    """
    locked = Session.objects.select_for_update().get(pk=session.pk)
    _check(locked, at_version)
    was_open = locked.status == SessionStatus.ACTIVE
    was_shared = locked.visibility == Visibility.PROJECT
    changed = _apply(locked, settings)
    if changed:
        locked.version += 1
        locked.save(update_fields=[*changed, "version"])
    for name in (*changed, "version"):
        setattr(session, name, getattr(locked, name))
    if was_open and locked.status == SessionStatus.CLOSED:
        session_closed.send(sender=Session, session=session)
    if was_shared and locked.visibility == Visibility.PRIVATE:
        session_made_private.send(sender=Session, session=session)
    return session


def _check(locked: Session, version: int | None) -> None:
    if version not in (None, locked.version):
        raise Stale


def _apply(session: Session, settings: dict[str, Any]) -> list[str]:
    """Sets what differs, and returns the names of the columns that do."""
    columns = dict(settings)
    archived = columns.pop("archived", None)
    if archived is not None and archived != (session.archived_at is not None):
        columns["archived_at"] = timezone.now() if archived else None
    if "history_limit" in columns:
        columns["history_limit"] = clamped(columns["history_limit"])
    if columns.get("title", session.title) != session.title:
        columns["title_by_hand"] = bool(columns["title"])
    changed = [name for name, value in columns.items() if getattr(session, name) != value]
    for name in changed:
        setattr(session, name, columns[name])
    return changed


@transaction.atomic
def delete_session(session: Session, at_version: int | None = None) -> None:
    """Withholds the session from everybody at once; after UNDO_WINDOW it is gone for good.

    With `at_version`, only if the session is still at it. Raises Stale. To delete twice changes
    nothing.
    """
    # Locked first, as whoever writes to it does: nobody then waits for the other in a circle.
    session = Session.objects.select_for_update().get(pk=session.pk)
    _check(session, at_version)
    if session.deleted_at is None:
        session.deleted_at = timezone.now()
        session.version += 1
        session.save(update_fields=["deleted_at", "version"])
        session_deleted.send(sender=Session, session=session)


@transaction.atomic
def restore_session(session_id: UUID) -> Session | None:
    """Takes the deletion of a session back; None when it is too late, or was not deleted."""
    in_time = Session.objects.filter(pk=session_id, deleted_at__gte=Now() - UNDO_WINDOW)
    session = in_time.select_for_update().first()
    if session is None:
        return None
    session.deleted_at = None
    session.version += 1
    session.save(update_fields=["deleted_at", "version"])
    session_restored.send(sender=Session, session=session)
    return session


def purge_deleted() -> int:
    """Removes for good the sessions whose UNDO_WINDOW is over; returns how many."""
    late = Session.objects.filter(deleted_at__lt=Now() - UNDO_WINDOW).order_by("deleted_at")
    gone = 0
    for pk, project in late.values_list("pk", "project")[:1000]:
        with transaction.atomic():
            # As importers do, the project before its sessions.
            Project.objects.select_for_update(no_key=True).filter(pk=project).first()
            session = late.select_for_update().filter(pk=pk).first()
            if session is not None:
                session_expired.send(sender=Session, session=session)
                Session.objects.filter(pk=pk).delete()
                gone += 1
    return gone


# Upward from the head past what was deleted, by parent.
_LAST_ROLE = """(
    WITH RECURSIVE upward (parent_id, role, stands) AS (
        SELECT parent_id, role, deleted_at IS NULL AND role IN ('user', 'assistant')
        FROM chat_message WHERE id = chat_session.head_id
        UNION ALL
        SELECT parent.parent_id, parent.role,
            parent.deleted_at IS NULL AND parent.role IN ('user', 'assistant')
        FROM chat_message parent JOIN upward ON parent.id = upward.parent_id
        WHERE NOT upward.stands
    ) SELECT role FROM upward WHERE stands
)"""


def counted(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """`sessions` with `message_count`, of what people and the assistant said and nobody deleted,
    `last_role`, whose turn the last such message on the path was, and what
    `settings.CHAT_SESSION_COUNTS` adds.
    """
    for path in settings.CHAT_SESSION_COUNTS:
        sessions = import_string(path)(sessions)
    standing = Message.objects.filter(
        session=OuterRef("pk"), deleted_at=None, role__in=(Role.USER, Role.ASSISTANT)
    )
    number = standing.order_by().values("session").annotate(number=Count("pk")).values("number")
    return sessions.annotate(
        message_count=Coalesce(Subquery(number), 0),
        last_role=RawSQL(_LAST_ROLE, [], output_field=TextField(null=True)),  # noqa: S611
    )
