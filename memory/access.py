"""Which entries a member may see, and who decides whether one stands in the layers."""

from django.db.models import Q

from chat.models import Visibility
from memory.models import Entry, State
from memory.models.entries import EntryQuerySet
from projects.models import Membership, Role


def entries_for(member: Membership) -> EntryQuerySet:
    """The entries of the member's project that the member may see, with their sessions.

    What waits for review and comes from somebody else's private session may quote it. What was
    hidden is shown to those who write.
    """
    own_or_shared = (
        Q(session=None)
        | Q(session__visibility=Visibility.PROJECT)
        | Q(session__creator_id=member.user_id)
    )
    entries = member.project.entries.filter(~Q(state=State.PROPOSED) | own_or_shared)
    if not member.may_write:
        entries = entries.exclude(state=State.HIDDEN)
    return entries.select_related("session")


def may_decide(member: Membership, entry: Entry) -> bool:
    """Whether `member` may take `entry`, which waits for review or is hidden, into the layers.

    Owners may, but for what waits from a private session: that is for who began it, as nobody
    else has read it.
    """
    session = entry.session
    if entry.state == State.PROPOSED and session and session.visibility == Visibility.PRIVATE:
        return member.may_write and session.creator_id == member.user_id
    return member.role == Role.OWNER
