"""Which sessions a user may see and change; what they may not see answers 404."""

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from structlog.contextvars import bind_contextvars

from chat.compiled import CompiledObjects
from chat.models import Message, Role, Session, Visibility
from projects import access
from projects.models import Membership
from projects.models import Role as MemberRole


def sessions_for(user, token=None):
    """The sessions that `user`, or the project that `token` opens, may see."""
    sessions = Session.objects.visible_to(user)
    if token is not None and token.project_id:
        sessions = sessions.filter(project_id=token.project_id)
    return sessions


def _readable(pk: UUID, user: int) -> QuerySet[Session]:
    return Session.objects.visible_to(user).select_related("project", "creator").filter(pk=pk)


def _writable(pk: UUID, user: int) -> QuerySet[Session]:
    member = Membership.objects.filter(user=user, role__in=access.WRITERS)
    return _readable(pk, user).filter(Exists(member.filter(project=OuterRef("project"))))


_for_reading = CompiledObjects[Session](_readable, UUID, int)
_for_writing = CompiledObjects[Session](_writable, UUID, int)


def session_for_reading(user, pk, token=None) -> Session:
    """The session `pk` with its project, or Http404."""
    return _opened(_for_reading.first(pk, user.pk), user, token)


def session_for_writing(user, pk, token=None) -> Session:
    """As `session_for_reading`, for owners and editors of its project."""
    return _opened(_for_writing.first(pk, user.pk), user, token)


def _opened(found: Session | None, user, token) -> Session:
    if found is None or (token is not None and token.project_id not in (None, found.project_id)):
        raise Http404
    # For the lines that are logged from here on.
    bind_contextvars(user_id=user.pk, project_id=str(found.project_id), session_id=str(found.pk))
    return found


def session_for_managing(user, pk, token=None) -> Session:
    """As `session_for_reading`, for its creator as long as they may write, and for owners."""
    session = session_for_reading(user, pk, token)
    if not may_manage(access.membership(user, session.project.slug, token=token), session):
        raise Http404
    return session


def deleted_session_for_managing(user, pk, token=None) -> Session:
    """A session that was deleted, for those who may manage it, or Http404."""
    session = (
        Session.objects.exclude(deleted_at=None).select_related("project").filter(pk=pk).first()
    )
    if session is None:
        raise Http404
    member = access.membership(user, session.project.slug, token=token)
    others = session.visibility == Visibility.PRIVATE and session.creator_id != member.user_id
    if others or not may_manage(member, session):
        raise Http404
    return session


def may_manage(member: Membership, session: Session) -> bool:
    """Whether `member` may change how `session` is kept, empty it and delete it."""
    return member.role == MemberRole.OWNER or (
        member.may_write and session.creator_id == member.user_id
    )


def message_for_reading(user, pk, token=None) -> Message:
    """The message `pk` with its author, in a session that `user` may read, or Http404."""
    message = Message.objects.select_related("author").filter(pk=pk).first()
    if message is None:
        raise Http404
    message.session = session_for_reading(user, message.session_id, token)
    return message


def message_for_writing(user, pk, token=None) -> Message:
    """As `message_for_reading`, in a session that `user` may write to."""
    message = message_for_reading(user, pk, token)
    access.project_for_writing(user, message.session.project.slug, token)
    return message


def message_for_changing(user, pk, token=None) -> Message:
    """As `message_for_writing`. Raises PermissionDenied for the words of somebody else."""
    message = message_for_writing(user, pk, token)
    member = access.membership(user, message.session.project.slug, token=token)
    if not may_change(member, message):
        raise PermissionDenied(_("Only its author and the project's owners change this message."))
    return message


def may_change(member: Membership, message: Message) -> bool:
    """Whether `member` may edit and delete `message`: an own one, or what no person said."""
    own = message.role != Role.USER or message.author_id == member.user_id
    return member.role == MemberRole.OWNER or (member.may_write and own)
