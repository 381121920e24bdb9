"""What a project holds about one of its people."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Max, OuterRef, Q

from chat.access import sessions_for
from chat.models import Message, Session
from memory.facts.access import facts_for
from memory.models import Fact, FactSource
from memory.models.facts import FactQuerySet
from projects.models import Membership

SHOWN = 10


@dataclass(frozen=True)
class Profile:
    """`facts` are those about the person alone, and those that the person told."""

    sessions: int
    messages: int
    facts: int
    last_seen: datetime | None
    recent_sessions: list[Session]
    sample_facts: list[Fact]


def profile(member: Membership, user) -> Profile:
    """What the project holds about `user`, as far as `member` may see it: of somebody else, nothing
    from their private chats.
    """
    visible = sessions_for(member.user).filter(project=member.project)
    sessions = visible.filter(creator=user)
    said = Message.objects.filter(
        project=member.project, session__in=visible, author=user, deleted_at=None
    )
    facts = _facts(member, user)
    return Profile(
        sessions=sessions.count(),
        messages=said.count(),
        facts=facts.count(),
        last_seen=said.aggregate(last=Max("created_at"))["last"],
        recent_sessions=list(sessions.newest_first()[:SHOWN]),
        sample_facts=list(facts.newest_first()[:SHOWN]),
    )


def _facts(member: Membership, user) -> FactQuerySet:
    visible = sessions_for(member.user).filter(project=member.project)
    told = FactSource.objects.filter(fact=OuterRef("pk"), message__author=user, session__in=visible)
    return facts_for(member).known().filter(Q(user=user) | Exists(told))
