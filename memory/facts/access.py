"""Which facts a member may see, who decides on one, and which speak against each other."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from chat.access import sessions_for
from chat.models import Session, Visibility
from memory.models import Fact, FactSource, Standing
from memory.models.facts import FactQuerySet
from projects.models import Membership, Role

# Facts that are told to stand against each other.
MOST_CONTRADICTIONS = 200


def facts_for(member: Membership) -> FactQuerySet:
    """The facts of the member's project that the member may see, in every state: those of the
    project, and those about the member alone.

    What waits for review and was said only in somebody else's private session may not be read
    before that somebody takes it in. What was hidden is shown to those who write.
    """
    seen = FactSource.objects.filter(fact=OuterRef("pk"), session__in=_open_to(member))
    facts = Fact.objects.filter(
        Q(user=None) | Q(user=member.user_id),
        ~Q(state=Standing.PROPOSED) | Q(by_hand=True) | Exists(seen),
        project=member.project,
    )
    return facts if member.may_write else facts.exclude(state=Standing.HIDDEN)


def _open_to(member: Membership):
    sessions = Session.objects.filter(project=member.project)
    return sessions.filter(Q(visibility=Visibility.PROJECT) | Q(creator=member.user_id))


def may_decide(member: Membership, fact: Fact) -> bool:
    """Whether `member` may approve or reject `fact`, hide it or show it again.

    Owners may; what is about one person is for that person; and what waits from a private session
    alone for who began it, as nobody else has read it.
    """
    if fact.user_id is not None:
        return fact.user_id == member.user_id
    if fact.state == Standing.PROPOSED and not fact.by_hand:
        told_openly = FactSource.objects.filter(
            fact=fact, session__visibility=Visibility.PROJECT
        ).exists()
        if not told_openly:
            own = FactSource.objects.filter(fact=fact, session__creator=member.user_id)
            return member.may_write and own.exists()
    return member.role == Role.OWNER


def history(member: Membership, fact: Fact) -> FactQuerySet:
    """All facts of the topic of `fact`, the newest first, as known now."""
    return facts_for(member).filter(topic=fact.topic).known().newest_first()


def contradictions(member: Membership) -> list[list[Fact]]:
    """Facts that cannot all be so: of one topic, of which none ends the other, since they begin at
    the same time, or since one begins before the end that somebody gave the other.
    """
    found = facts_for(member).known()
    others = (
        Fact.objects.standing()
        .current()
        .filter(project=OuterRef("project"), topic=OuterRef("topic"))
        .exclude(pk=OuterRef("pk"))
    )
    at_once = others.filter(valid_from=OuterRef("valid_from"))
    begun_within = others.filter(
        valid_from__gt=OuterRef("valid_from"), valid_from__lt=OuterRef("valid_until")
    )
    within = others.filter(
        valid_from__lt=OuterRef("valid_from"), valid_until__gt=OuterRef("valid_from")
    )
    rows = found.filter(Exists(at_once) | Exists(begun_within) | Exists(within))
    by_topic: dict[str, list[Fact]] = {}
    for fact in rows.order_by("topic", "valid_from", "pk")[:MOST_CONTRADICTIONS]:
        by_topic.setdefault(fact.topic, []).append(fact)
    return list(by_topic.values())


def readable_sources(
    member: Membership, facts: Sequence[Fact | UUID]
) -> dict[UUID | None, list[FactSource]]:
    """The sources of `facts` that the member may read, by fact, with their messages: one query.

    Those of an earlier version are the sources of its fact.
    """
    ids = {one if isinstance(one, UUID) else one.earlier_of_id or one.pk for one in facts}
    rows = FactSource.objects.filter(
        fact__in=ids, session__in=sessions_for(member.user).filter(project=member.project)
    ).select_related("message__author", "session")
    found: dict[UUID | None, list[FactSource]] = {}
    for source in rows:
        found.setdefault(source.fact_id, []).append(source)
    return found
