"""Profile: the data that a project remembers about one of its members."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Max, OuterRef, Q

from chat.models import Message, Session
from chat.permissions import sessions_for
from memory.facts.permissions import facts_for
from memory.models import Fact, FactSource
from projects.models import Membership

MAX_ROWS = 10


@dataclass(frozen=True)
class Profile:
    """Counts and samples; `facts` are those about the person, and those that the person stated."""

    sessions: int
    messages: int
    facts: int
    last_seen: datetime | None
    recent_sessions: list[Session]
    sample_facts: list[Fact]


def profile(member: Membership, user) -> Profile:
    """Return the profile of `user` as `member` may see it, without other users' private chats."""
    visible = sessions_for(member.user).filter(project=member.project)
    sessions = visible.filter(creator=user)
    messages = Message.objects.filter(
        project=member.project, session__in=visible, author=user, deleted_at=None
    )
    stated = FactSource.objects.filter(
        fact=OuterRef("pk"), message__author=user, session__in=visible
    )
    facts = facts_for(member).with_validity().filter(Q(user=user) | Exists(stated))
    return Profile(
        sessions=sessions.count(),
        messages=messages.count(),
        facts=facts.count(),
        last_seen=messages.aggregate(last=Max("created_at"))["last"],
        recent_sessions=list(sessions.newest_first()[:MAX_ROWS]),
        sample_facts=list(facts.newest_first()[:MAX_ROWS]),
    )
