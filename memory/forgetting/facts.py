"""Find and delete the facts of a forget request, and the sources that other facts lose."""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.facts import extraction
from memory.facts.create import lock_topics
from memory.facts.grounding import is_grounded
from memory.forgetting.scope import DeletionSet, ForgetScope, id_batches, pks
from memory.models import Fact, FactSource
from projects.models import Project


def source_messages(project: Project, fact: UUID) -> set[UUID]:
    """Return the messages that `fact` was extracted from."""
    rows = FactSource.objects.filter(project=project, fact=fact)
    return set(rows.values_list("message", flat=True))


def find_facts(project: Project, deletions: DeletionSet, scope: ForgetScope) -> None:
    """Add to `deletions` the facts and fact sources to delete, and lock these facts."""
    deletions.named_facts = named_facts(project, scope)
    deletions.facts = set(deletions.named_facts)
    if scope.fact is not None:
        # A concurrent extraction of the fact waits for this lock, and then finds the tombstone.
        lock_topics(project, all_versions(project, [scope.fact]).values_list("topic", flat=True))
    deletions.fact_sources = lost_sources(project, deletions)
    touched = FactSource.objects.filter(pk__in=deletions.fact_sources).values("fact")
    rows = Fact.objects.filter(Q(pk__in=deletions.facts) | Q(pk__in=touched), project=project)
    locked = rows.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True)
    remaining = FactSource.objects.filter(fact=OuterRef("pk"))
    remaining = remaining.exclude(pk__in=deletions.fact_sources)
    bare = Fact.objects.filter(~Exists(remaining), pk__in=list(locked), by_hand=False)
    deletions.facts |= set(bare.values_list("pk", flat=True))


def named_facts(project: Project, scope: ForgetScope) -> set[UUID]:
    """Return the facts that `scope` names directly. The id of an earlier version selects the
    current version.

    A `user` selects the facts about that user, and the facts that the user wrote or changed. For
    an editor, `ForgetScope.is_permitted_to` refuses this if others support one of these facts too.
    `before` selects the versions that were recorded before that moment; without `user`, only those
    that were written by hand.
    """
    rows = Fact.objects.filter(project=project)
    if scope.tombstones:
        return pks(rows.filter(pk__in=scope.tombstones.facts))
    if scope.fact is not None:
        rows = rows.filter(pk=scope.fact)
    elif scope.names_object or (scope.user is None and scope.before is None):
        return set()
    else:
        if scope.user is not None:
            name = get_user_model().objects.filter(pk=scope.user).values("username")
            written = Q(written_by__in=name) | Q(earlier__written_by__in=name)
            rows = rows.filter(Q(user=scope.user) | written)
        else:
            rows = rows.filter(by_hand=True)
        if scope.before is not None:
            return pks(rows.filter(recorded_at__lt=scope.before))
    return {current or pk for pk, current in rows.values_list("pk", "earlier_of")}


def lost_sources(project: Project, deletions: DeletionSet) -> set[UUID]:
    """Return the fact sources to delete.

    These are the sources in deleted messages, sessions and entries. A source in an entry that is
    withheld or shortened is deleted too, unless its own message alone supports the fact.
    """
    rows = FactSource.objects.filter(project=project)
    lost = rows.filter(Q(session__in=deletions.sessions) | Q(fact__in=deletions.facts))
    pks = set(lost.values_list("pk", flat=True))
    for batch in id_batches(deletions.messages | deletions.unremembered):
        pks |= set(rows.filter(message__in=batch).values_list("pk", flat=True))
    for batch in id_batches(deletions.entries):
        pks |= set(rows.filter(entry__in=batch).values_list("pk", flat=True))
    for batch in id_batches(deletions.withheld | deletions.trims.keys()):
        for source in rows.filter(entry__in=batch).select_related("fact", "message__author"):
            evidence = (source.message.speaker, source.message.text)
            if not is_grounded(f"{source.fact.subject} {source.fact.object}", evidence):
                pks.add(source.pk)
    return pks


def all_versions(project: Project, facts: Iterable[UUID]) -> QuerySet[Fact]:
    return extraction.versions_of(project.pk, Fact.objects.filter(project=project, pk__in=facts))


def delete_facts(project: Project, deletions: DeletionSet) -> int:
    """Delete the facts and their lost sources; return how many, including earlier versions."""
    rows = Fact.objects.filter(project=project, pk__in=deletions.facts)
    deleted = rows.delete()[1].get(Fact._meta.label, 0)
    extraction.remove_sources(
        FactSource.objects.filter(project=project, pk__in=deletions.fact_sources)
    )
    return deleted
