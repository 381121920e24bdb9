"""Permissions of facts: which facts and sources a member may see, and who reviews a fact."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404

from chat.models import Session, Visibility
from chat.permissions import sessions_for
from memory.models import Fact, FactSource, FactStatus
from memory.models.facts import FactQuerySet
from projects.models import MemberRole, Membership

MAX_CONTRADICTIONS = 200


def facts_for(member: Membership) -> FactQuerySet:
    """Return the facts that the member may see, in every state: those of the project, and those
    about the member.

    The text of a fact whose summaries are all withheld is not visible.
    """
    # Sources belong to the current version of a fact.
    current = Coalesce(OuterRef("earlier_of"), OuterRef("pk"))
    with_text = FactSource.objects.filter(
        project=OuterRef("project"), fact=current, entry__withheld=False
    )
    return known_facts(member).filter(Q(by_hand=True) | Exists(with_text))


def known_facts(member: Membership) -> FactQuerySet:
    """Return the facts that exist for the member: those of `facts_for`, and those whose summaries
    are all withheld.

    A fact whose only sources are in another member's private session does not exist before that
    member approves it. Hidden facts exist for editors and owners. The same applies to each earlier
    version, with the sources that were found before it was replaced.
    """
    readable = Session.objects.filter(
        Q(visibility=Visibility.PROJECT) | Q(creator=member.user_id), project=member.project
    )
    seen = FactSource.objects.filter(
        fact=Coalesce(OuterRef("earlier_of"), OuterRef("pk")),
        session__in=readable,
        found_at__lte=Coalesce(OuterRef("retired_at"), F("found_at")),
    )
    facts = Fact.objects.filter(
        Q(user=None) | Q(user=member.user_id),
        Q(~Q(state=FactStatus.PROPOSED), waits_because="") | Q(by_hand=True) | Exists(seen),
        project=member.project,
    )
    return facts if member.is_writer else facts.exclude(state=FactStatus.HIDDEN)


def fact_for_reading(member: Membership, pk: UUID | str) -> Fact:
    """Return the current version of a fact that the member may see, in any state.

    If the fact is supported, it has the annotation `until`, the end of its validity. Raises
    Http404.
    """
    rows = facts_for(member).current().select_related("user", "project")
    return rows.with_validity().filter(pk=pk).first() or get_object_or_404(rows, pk=pk)


def may_decide(member: Membership, fact: Fact) -> bool:
    """Return whether `member` may approve, reject, hide or show `fact`."""
    return fact.pk in decidable(member, [fact])


def decidable(member: Membership, facts: Sequence[Fact]) -> set[UUID]:
    """Return the ids of those of `facts` that `member` may approve, reject, hide or show, with at
    most one query.

    - If the fact is about one user, this user decides.
    - If all sources of a proposed or rejected fact are in private sessions, the creators of these
      sessions decide, because nobody else has read the sources. They must have the right to write.
    - Owners decide about all other facts.
    """
    is_own = Q(session__creator=member.user_id)
    is_shared = Q(session__visibility=Visibility.PROJECT)
    extracted = [
        fact.pk
        for fact in facts
        if (fact.state == FactStatus.PROPOSED or fact.waits_because) and not fact.by_hand
    ]
    sources = FactSource.objects.filter(fact__in=extracted).order_by().values_list("fact")
    counts = sources.annotate(own=Count("pk", filter=is_own), shared=Count("pk", filter=is_shared))
    found = {pk: (own, shared) for pk, own, shared in counts}

    def decides(fact: Fact) -> bool:
        if fact.user_id is not None:
            return fact.user_id == member.user_id
        own, shared = found.get(fact.pk, (0, 0))
        if fact.pk in extracted and not shared:
            return member.may_write and own > 0
        return member.role == MemberRole.OWNER

    return {fact.pk for fact in facts if decides(fact)}


def topic_history(member: Membership, fact: Fact) -> FactQuerySet:
    """Return the supported facts of the topic of `fact` that the member may see, newest first.

    Earlier versions of facts and retired facts are left out. The facts have the annotations of
    `with_validity`.
    """
    return facts_for(member).filter(topic=fact.topic).with_validity().newest_first()


def contradictions(member: Membership) -> list[list[Fact]]:
    """Return groups of facts of one topic that contradict each other.

    Two facts contradict each other in two cases:

    - They begin at the same time.
    - One begins within the period of the other, and a user entered the end of this period.
    """
    others = (
        Fact.objects.supported()
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
    rows = facts_for(member).with_validity().select_related("user")
    rows = rows.filter(Exists(at_once) | Exists(begun_within) | Exists(within))
    by_topic: dict[str, list[Fact]] = {}
    for fact in rows.order_by("topic", "valid_from", "pk")[:MAX_CONTRADICTIONS]:
        by_topic.setdefault(fact.topic, []).append(fact)
    return list(by_topic.values())


def readable_sources(
    member: Membership, facts: Sequence[Fact | UUID]
) -> dict[UUID | None, list[FactSource]]:
    """Return the sources that the member may read, with their messages, by fact, in one query.

    Earlier versions have no sources of their own: look up the id of their fact (`earlier_of_id`).
    """
    ids = {fact if isinstance(fact, UUID) else fact.earlier_of_id or fact.pk for fact in facts}
    rows = FactSource.objects.filter(
        fact__in=ids, session__in=sessions_for(member.user).filter(project=member.project)
    ).select_related("message__author", "session")
    by_fact: dict[UUID | None, list[FactSource]] = {}
    for source in rows:
        by_fact.setdefault(source.fact_id, []).append(source)
    return by_fact
