"""Find the sessions and messages that a user may read or change.

Without permission, functions raise Http404, or PermissionDenied if the user may write in the chat
but not change the message.
"""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from structlog.contextvars import bind_contextvars

from chat.models import Message, Role, Session, Visibility
from chat.models.sessions import SessionStatus
from projects import permissions
from projects.core.database import PreparedObjects
from projects.core.models import new_id
from projects.models import MemberRole, Membership


def sessions_for(user, token=None):
    """Return the sessions that `user` may read. A `token` may limit them to one project."""
    sessions = Session.objects.visible_to(user)
    if token is not None and token.project_id:
        sessions = sessions.filter(project_id=token.project_id)
    return sessions


def session_for_reading(user, pk, token=None, slug: str | None = None) -> Session:
    """Return the session `pk` with its project and creator.

    Raises Http404, also if `slug` is given and names another project.
    """
    return _get_session(_readable_sessions, user, pk, token, slug)


def session_for_writing(user, pk, token=None, slug: str | None = None) -> Session:
    """Like `session_for_reading`, but only for owners and editors of the project.

    Raises `ProjectArchivedError`.
    """
    session = _get_session(_writable_sessions, user, pk, token, slug)
    permissions.require_active(session.project)
    return session


def _get_session(sessions: PreparedObjects, user, pk, token, slug: str | None) -> Session:
    [session] = sessions(user.pk, pk) or [None]
    if session is None or slug not in (None, session.project.slug):
        raise Http404
    if token is not None and token.project_id not in (None, session.project_id):
        raise Http404
    # For the log lines of the rest of the request.
    bind_contextvars(
        user_id=user.pk, project_id=str(session.project_id), session_id=str(session.pk)
    )
    return session


def _make_readable_query(user: int, pk: UUID) -> QuerySet[Session]:
    return Session.objects.visible_to(user).select_related("project", "creator").filter(pk=pk)


@PreparedObjects.of(int, UUID)
def _writable_sessions(user: int, pk: UUID) -> QuerySet[Session]:
    member = Membership.objects.filter(user=user, role__in=permissions.WRITERS)
    is_writer = Exists(member.filter(project=OuterRef("project")))
    return _make_readable_query(user, pk).filter(is_writer)


_readable_sessions = PreparedObjects(_make_readable_query, int, UUID)


def session_for_managing(user, pk, token=None, slug: str | None = None) -> Session:
    """Return the session if `user` may read it, and owns its project or is its creator with write
    access.

    Raises `ProjectArchivedError`.
    """
    session = session_for_reading(user, pk, token, slug)
    permissions.require_active(session.project)
    if not may_manage(permissions.membership(user, session.project.slug, token=token), session):
        raise Http404
    return session


def deleted_session_for_managing(user, pk, token=None) -> Session:
    """Return a deleted session for those who may manage it.

    Raises Http404, or `ProjectArchivedError`.
    """
    deleted = Session.objects.exclude(deleted_at=None).select_related("project")
    session = deleted.filter(pk=pk).first()
    # Queried in any case, so that a missing session takes as many queries as a forbidden one.
    member = permissions.membership(user, session.project.slug if session else "", token=token)
    if session is None:
        raise Http404
    permissions.require_active(member.project)
    is_hidden = session.visibility == Visibility.PRIVATE and session.creator_id != member.user_id
    if is_hidden or not may_manage(member, session):
        raise Http404
    return session


def may_manage(member: Membership, session: Session) -> bool:
    """Return whether `member` may change the session's settings, clear it and delete it. For
    owners, this is True also in archived projects.
    """
    return member.role == MemberRole.OWNER or (
        member.may_write and session.creator_id == member.user_id
    )


def manageable_sessions(member: Membership) -> QuerySet[Session]:
    """Return the chats of the project that `member` may manage; none if it is archived."""
    chats = Session.objects.visible_to(member.user).chats().filter(project=member.project)
    if not member.may_write:
        return chats.none()
    return chats if member.role == MemberRole.OWNER else chats.filter(creator=member.user_id)


def may_post(member: Membership, session: Session) -> bool:
    """Return whether `member` may post messages. Closed chats and notes accept none."""
    is_open = session.status == SessionStatus.ACTIVE and not session.is_notes
    return member.may_write and is_open


def require_chat(session: Session) -> Session:
    """Return the session. Raises Http404 for notes, because no page links to their chat."""
    if session.is_notes:
        raise Http404(_("Notes do not get replies."))
    return session


def require_open(session: Session) -> Session:
    """Return the session. Raises Http404 for notes and for a closed chat.

    The page of a closed chat has no form, so a request comes from a page that was loaded before the
    chat was closed.
    """
    require_chat(session)
    if session.status == SessionStatus.CLOSED:
        raise Http404(_("This chat is closed."))
    return session


def message_for_reading(user, pk, token=None) -> Message:
    """Return the message `pk` with its author if `user` may read its session. Otherwise, raise
    Http404.
    """
    message = Message.objects.select_related("author").filter(pk=pk).first()
    # Queried in any case, so that a missing message takes as many queries as a forbidden one.
    session = session_for_reading(user, message.session_id if message else new_id(), token)
    if message is None:
        raise Http404
    message.session = session
    return message


def message_for_writing(user, pk, token=None) -> Message:
    """Like `message_for_reading`, but only in a session that `user` may write to."""
    message = message_for_reading(user, pk, token)
    permissions.project_for_writing(user, message.session.project.slug, token)
    return message


def message_for_changing(user, pk, token=None) -> Message:
    """Return the message if the user may change it (`may_change`). Raises PermissionDenied for
    other writers.
    """
    message = message_for_writing(user, pk, token)
    member = permissions.membership(user, message.session.project.slug, token=token)
    if not may_change(member, message):
        raise PermissionDenied(_("Only the author and the project owners can change this message."))
    return message


def may_change(member: Membership, message: Message) -> bool:
    """Return whether `member` may edit and delete `message`. For owners, this is True also in
    archived projects.

    Owners may change every message. Other writers may change their own messages, and all messages
    whose role is not `user`.
    """
    own = message.role != Role.USER or message.author_id == member.user_id
    return member.role == MemberRole.OWNER or (member.may_write and own)
