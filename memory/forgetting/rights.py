"""Who may have what forgotten."""

from chat.models import Message, Session
from memory.forgetting import Scope
from projects.models import Membership, Role


def may_forget(member: Membership, scope: Scope) -> bool:
    """Owners anything in their project; whoever writes in it their own words, and the sessions
    that they began and that nobody else has spoken in.
    """
    if member.role == Role.OWNER:
        return True
    if not member.may_write or scope.entry is not None:
        return False
    own = {"project": member.project, "author": member.user_id}
    if scope.user is not None:
        return scope.user == member.user_id
    if scope.message is not None:
        return Message.objects.filter(pk=scope.message, **own).exists()
    if scope.session is None:
        return False
    begun = Session.objects.filter(pk=scope.session, creator=member.user_id)
    spoken = Message.objects.filter(session=scope.session).exclude(author=None)
    return begun.exists() and not spoken.exclude(author=member.user_id).exists()
