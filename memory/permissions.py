"""Which entries a member may see, who decides whether one stands in the layers, who forgets."""

from django.db.models import Q
from django.utils.translation import gettext as _

from chat.models import Session, Visibility
from memory.models import Entry, State
from memory.models.entries import EntryQuerySet
from memory.moderation import DECISIONS, Act, Objection
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


def is_private(entry: Entry) -> bool:
    """Whether it is of a private session."""
    return entry.session is not None and entry.session.visibility == Visibility.PRIVATE


def may_decide(member: Membership, entry: Entry) -> bool:
    """Whether `member` may take `entry`, which waits for review or is hidden, into the layers.

    Owners may, but for what waits from a private session: that is for who began it, as nobody
    else has read it.
    """
    if entry.state == State.PROPOSED and is_private(entry):
        assert entry.session is not None
        return member.may_write and entry.session.creator_id == member.user_id
    return member.role == Role.OWNER


def may_forget(member: Membership, session: Session | None = None) -> bool:
    """Whether `member` may have something forgotten for good: owners, and of a private session
    who began it.
    """
    own = (
        session is not None
        and session.visibility == Visibility.PRIVATE
        and session.creator_id == member.user_id
    )
    return member.role == Role.OWNER or (member.may_write and own)


def objection_of(member: Membership) -> Objection:
    """What speaks against an act by `member`."""

    def objection(entry: Entry, act: Act) -> str:
        if not member.may_write:
            return _("Owners and editors change what is remembered.")
        if act in DECISIONS and not may_decide(member, entry):
            return _("An owner decides on it.")
        # What is redacted is gone for good, from the earlier texts too.
        if act in (Act.REDACT, Act.FORGET) and not may_forget(member, entry.session):
            return _("Only owners have something forgotten.")
        return ""

    return objection
