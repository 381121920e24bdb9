"""Which sessions a user may see and change; what they may not see answers 404."""

from django.http import Http404

from chat.models import Message, Session
from projects import access


def sessions_for(user, token=None):
    """The sessions that `user`, or the project that `token` opens, may see."""
    sessions = Session.objects.visible_to(user)
    if token is not None and token.project_id:
        sessions = sessions.filter(project_id=token.project_id)
    return sessions


def session_for_reading(user, pk, token=None) -> Session:
    """The session `pk` with its project, or Http404."""
    session = sessions_for(user, token).select_related("project", "creator").filter(pk=pk).first()
    if session is None:
        raise Http404
    return session


def session_for_writing(user, pk, token=None) -> Session:
    """As `session_for_reading`, for owners and editors of its project."""
    session = session_for_reading(user, pk, token)
    access.project_for_writing(user, session.project.slug, token)
    return session


def message_for_writing(user, pk, token=None) -> Message:
    """The message `pk` in a session that `user` may write to, or Http404."""
    message = Message.objects.select_related("session").filter(pk=pk).first()
    if message is None:
        raise Http404
    message.session = session_for_writing(user, message.session_id, token)
    return message
