"""Sessions: settings, tags, share links, closing, deletion, and annotations for lists."""

from collections.abc import Iterable
from datetime import timedelta
from secrets import token_urlsafe
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import (
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from chat.models import Message, Role, Session
from chat.models.sessions import HISTORY_LIMITS, SessionStatus, Visibility
from chat.signals import (
    session_archived,
    session_closed,
    session_deleted,
    session_expired,
    session_made_private,
    session_restored,
)
from projects.core.database import logged_failure
from projects.core.errors import InvalidInputError, StaleVersionError
from projects.core.text import storable
from projects.models import Project

# The time in which a deleted session can be restored.
UNDO_WINDOW = timedelta(minutes=10)
# The maximum number of sessions that one run closes. The next run continues.
CLOSE_BATCH_SIZE = 500
PURGE_BATCH_SIZE = 1_000
MAX_TAGS = 10
MAX_TAG_CHARS = 30
SHARE_KEY_BYTES = 24


def clamp_history_limit(limit: int | None) -> int | None:
    """Return the limit clamped to HISTORY_LIMITS. None means the project's limit."""
    least, most = HISTORY_LIMITS
    return limit if limit is None else min(max(limit, least), most)


def create_session(project, creator, **settings) -> Session:
    """Create a session. `settings` are the same as for `update_session`."""
    session = Session(project=project, creator=creator)
    _apply(session, settings)
    session.save(force_insert=True)
    return session


@transaction.atomic
def update_session(
    session: Session,
    at_version: int | None = None,
    *,
    by: Any = None,
    expired: bool = False,
    **settings,
) -> Session:
    """Change settings of `session`. Increase its version if any setting differs.

    `settings` are fields of Session, and `archived` (a bool). `by` is the user who changes them.
    Raises StaleVersionError if the session does not have the version `at_version`. A title that is
    set here is never replaced by a generated title, unless it is empty. `expired` is passed to
    receivers of `session_closed`; it means that the session was closed automatically.
    """
    locked = Session.objects.select_for_update().get(pk=session.pk)
    _check_version(locked, at_version)
    was_open = locked.status == SessionStatus.ACTIVE
    was_shared = locked.visibility == Visibility.PROJECT
    changed = _apply(locked, settings)
    if changed:
        locked.version += 1
        locked.save(update_fields=[*changed, "version"])
    for name in (*changed, "version"):
        setattr(session, name, getattr(locked, name))
    if was_open and locked.status == SessionStatus.CLOSED:
        session_closed.send(sender=Session, session=session, expired=expired)
    if "archived_at" in changed:
        session_archived.send(sender=Session, session=session, by=by)
    if was_shared and locked.visibility == Visibility.PRIVATE:
        session_made_private.send(sender=Session, session=session)
    return session


def clean_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags in order, without surrounding spaces, empty tags and repetitions.

    Raises InvalidInputError for more than MAX_TAGS tags or a tag of more than MAX_TAG_CHARS.
    """
    found = {
        tag.casefold(): tag for it in tags if (tag := " ".join(storable(it).split()).strip("# "))
    }
    if len(found) > MAX_TAGS or any(len(tag) > MAX_TAG_CHARS for tag in found.values()):
        message = _("A chat can have %(tags)s tags of at most %(chars)s characters.")
        limits = {"tags": MAX_TAGS, "chars": MAX_TAG_CHARS}
        raise InvalidInputError(message % limits, field="tags")
    return list(found.values())


def share(session: Session) -> str:
    """Return the key of the share link of `session`. A link is created if there is none.

    Raises `Session.DoesNotExist` if the session was made private, or the link revoked, in the
    meantime.
    """
    rows = Session.objects.filter(pk=session.pk, visibility=session.visibility)
    rows.filter(share_key="").update(share_key=token_urlsafe(SHARE_KEY_BYTES))
    session.share_key = rows.exclude(share_key="").values_list("share_key", flat=True).get()
    return session.share_key


def unshare(session: Session) -> None:
    """Revoke the share link of `session`."""
    Session.objects.filter(pk=session.pk).update(share_key="")
    session.share_key = ""


def shared_session(project: Project, key: str) -> Session | None:
    """Return the chat of `project` whose share link has the key `key`, or None.

    The link to a private chat becomes invalid when its creator leaves the project.
    """
    if not key:
        return None
    rows = Session.objects.not_deleted().chats().filter(project=project, share_key=key)
    creator_is_member = Exists(project.memberships.filter(user=OuterRef("creator")))
    rows = rows.filter(Q(visibility=Visibility.PROJECT) | creator_is_member)
    return rows.select_related("project", "creator").first()


def _check_version(locked: Session, version: int | None) -> None:
    if version not in (None, locked.version):
        raise StaleVersionError


def _apply(session: Session, settings: dict[str, Any]) -> list[str]:
    """Set the columns that differ. Return their names."""
    columns = dict(settings)
    archived = columns.pop("archived", None)
    if archived is not None and archived != (session.archived_at is not None):
        columns["archived_at"] = timezone.now() if archived else None
    if "tags" in columns:
        columns["tags"] = clean_tags(columns["tags"])
    if columns.get("visibility") == Visibility.PRIVATE != session.visibility:
        # Revoke the share link when a chat is made private. Its creator can create a new link.
        columns["share_key"] = ""
    if columns.get("status") == SessionStatus.ACTIVE != session.status:
        # Otherwise, the next run would close a chat that was closed for inactivity.
        columns["last_activity_at"] = timezone.now()
    if "history_limit" in columns:
        columns["history_limit"] = clamp_history_limit(columns["history_limit"])
    if columns.get("title", session.title) != session.title:
        columns["title_by_hand"] = bool(columns["title"])
    changed = [name for name, value in columns.items() if getattr(session, name) != value]
    for name in changed:
        setattr(session, name, columns[name])
    return changed


@transaction.atomic
def delete_session(session: Session, at_version: int | None = None) -> None:
    """Hide the session at once. After UNDO_WINDOW it is deleted permanently.

    Raises StaleVersionError if the session does not have the version `at_version`. Deleting it
    twice changes nothing.
    """
    # Lock the session first, in the same order as writers do, to prevent deadlocks.
    session = Session.objects.select_for_update().get(pk=session.pk)
    _check_version(session, at_version)
    if session.deleted_at is None:
        session.deleted_at = timezone.now()
        session.version += 1
        session.save(update_fields=["deleted_at", "version"])
        session_deleted.send(sender=Session, session=session)


@transaction.atomic
def restore_session(session_id: UUID) -> Session | None:
    """Undo the deletion of a session. Return None if it was not deleted or if it is too late."""
    deleted = Session.objects.filter(pk=session_id, deleted_at__gte=Now() - UNDO_WINDOW)
    session = deleted.select_for_update().first()
    if session is None:
        return None
    session.deleted_at = None
    session.version += 1
    session.save(update_fields=["deleted_at", "version"])
    session_restored.send(sender=Session, session=session)
    return session


def purge_deleted() -> int:
    """Permanently delete the sessions whose UNDO_WINDOW is over. Return their number."""
    expired = Session.objects.filter(deleted_at__lt=Now() - UNDO_WINDOW).order_by("deleted_at")
    count = 0
    for pk, project in expired.values_list("pk", "project")[:PURGE_BATCH_SIZE]:
        with logged_failure("session_purge_failed session=%s", pk), transaction.atomic():
            # Lock the project before its sessions, in the same order as importers.
            Project.objects.select_for_update(no_key=True).filter(pk=project).first()
            session = expired.select_for_update().filter(pk=pk).first()
            if session is not None:
                session_expired.send(sender=Session, session=session)
                Session.objects.filter(pk=pk).delete()
                count += 1
    return count


def close_idle_sessions() -> int:
    """Close chats without activity for the time set in their project, by default CLOSE_AFTER_DAYS.
    Return their number. Archived projects are left out.

    The next cycle summarises the messages of a closed session that have no summary.
    """
    hours = Coalesce(F("project__close_after_hours"), Value(24 * settings.CLOSE_AFTER_DAYS))
    length = ExpressionWrapper(hours * Value(timedelta(hours=1)), output_field=DurationField())
    idle = Session.objects.chats().filter(
        status=SessionStatus.ACTIVE, last_activity_at__lt=Now() - length, project__archived_at=None
    )
    count = 0
    for pk in idle.order_by("last_activity_at").values_list("pk", flat=True)[:CLOSE_BATCH_SIZE]:
        with logged_failure("session_close_failed session=%s", pk), transaction.atomic():
            # Check again under the lock, because closing the sessions before it takes time.
            session = idle.select_for_update(of=("self",)).filter(pk=pk).first()
            if session is not None:
                update_session(session, expired=True, status=SessionStatus.CLOSED)
                count += 1
    return count


# The role of the last visible message on the path. Starts at the head and skips deleted messages.
_LAST_ROLE = """(
    WITH RECURSIVE upward (parent_id, role, is_visible) AS (
        SELECT parent_id, role, deleted_at IS NULL AND role IN ('user', 'assistant')
        FROM chat_message WHERE id = chat_session.head_id
        UNION ALL
        SELECT parent.parent_id, parent.role,
            parent.deleted_at IS NULL AND parent.role IN ('user', 'assistant')
        FROM chat_message parent JOIN upward ON parent.id = upward.parent_id
        WHERE NOT upward.is_visible
    ) SELECT role FROM upward WHERE is_visible
)"""


def with_list_columns(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Annotate the columns of session lists.

    `message_count` is the number of user and assistant messages that are not deleted. `last_role`
    is the role of the last of these messages on the active path. `settings.CHAT_SESSION_COUNTS`
    adds more columns.
    """
    for path in settings.CHAT_SESSION_COUNTS:
        sessions = import_string(path)(sessions)
    messages = Message.objects.filter(
        session=OuterRef("pk"), deleted_at=None, role__in=(Role.USER, Role.ASSISTANT)
    )
    counts = messages.order_by().values("session").annotate(count=Count("pk")).values("count")
    return sessions.annotate(
        message_count=Coalesce(Subquery(counts), 0),
        last_role=RawSQL(_LAST_ROLE, [], output_field=TextField(null=True)),  # noqa: S611
    )
