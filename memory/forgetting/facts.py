"""What a wish to forget comes to among the facts: which go, and which lose a source."""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.facts import deriving
from memory.facts.backing import backed
from memory.facts.recording import lock
from memory.forgetting.found import Found
from memory.forgetting.scope import Scope
from memory.models import Fact, FactSource, Tombstone
from projects.models import Project

# Ids in one query.
AT_ONCE = 5_000


def messages_of(project: Project, fact: UUID) -> set[UUID]:
    """The messages that tell `fact`."""
    rows = FactSource.objects.filter(project=project, fact=fact)
    return set(rows.values_list("message", flat=True))


def find(project: Project, found: Found, scope: Scope) -> None:
    """Sets which facts go and which sources of others do; all of them are locked."""
    found.named_facts = _meant(project, scope)
    found.facts = set(found.named_facts)
    if scope.fact is not None:
        # A summary under way that tells it waits, and finds its grave.
        lock(project, _versions(project, [scope.fact]).values_list("topic", flat=True))
    found.told = _told(project, found)
    touched = FactSource.objects.filter(pk__in=found.told).values("fact")
    rows = Fact.objects.filter(Q(pk__in=found.facts) | Q(pk__in=touched), project=project)
    locked = rows.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True)
    left = FactSource.objects.filter(fact=OuterRef("pk")).exclude(pk__in=found.told)
    bare = Fact.objects.filter(~Exists(left), pk__in=list(locked), by_hand=False)
    found.facts |= set(bare.values_list("pk", flat=True))


def _meant(project: Project, scope: Scope) -> set[UUID]:
    """The facts that are named; those about a user, and those that they gave or changed; those
    that were given before a moment.
    """
    rows = Fact.objects.filter(project=project)
    if scope.buried:
        return _ids(rows.filter(pk__in=scope.buried.facts))
    if scope.fact is not None:
        return _ids(rows.filter(pk=scope.fact))
    if scope.names_one:
        return set()
    if scope.user is None and scope.before is None:
        return set()
    if scope.user is not None:
        name = get_user_model().objects.filter(pk=scope.user).values("username")
        theirs = Q(user=scope.user) | Q(written_by__in=name) | Q(earlier__written_by__in=name)
        rows = rows.filter(theirs)
    else:
        rows = rows.filter(by_hand=True)
    if scope.before is not None:
        rows = rows.filter(recorded_at__lt=scope.before)
    return _ids(rows)


def _ids(rows: QuerySet[Fact]) -> set[UUID]:
    """Of facts; for an earlier version of one, of that."""
    return {above or pk for pk, above in rows.values_list("pk", "earlier_of")}


def _told(project: Project, found: Found) -> set[UUID]:
    """The sources that go: those in messages, sessions and entries that do; and of the entries
    that are withheld those whose own message alone does not tell the fact.
    """
    rows = FactSource.objects.filter(project=project)
    gone = {*_pks(rows.filter(Q(session__in=found.sessions) | Q(fact__in=found.facts)))}
    for some in _batches(found.messages | found.unremembered):
        gone |= {*_pks(rows.filter(message__in=some))}
    for some in _batches(found.entries):
        gone |= {*_pks(rows.filter(entry__in=some))}
    for some in _batches(found.withheld):
        told = rows.filter(entry__in=some).select_related("fact", "message__author")
        gone |= {one.pk for one in told if not _told_by_itself(one)}
    return gone


def _told_by_itself(source: FactSource) -> bool:
    material = (source.message.speaker, source.message.text)
    return backed(f"{source.fact.subject} {source.fact.object}", material)


def _pks(rows: QuerySet[FactSource]) -> Iterable[UUID]:
    return rows.values_list("pk", flat=True)


def _batches(ids: Iterable[UUID]) -> Iterable[list[UUID]]:
    ordered = sorted(ids)
    return (ordered[start : start + AT_ONCE] for start in range(0, len(ordered), AT_ONCE))


def bury(project: Project, found: Found) -> list[Tombstone]:
    """The graves of facts that were meant themselves."""
    meant = found.named_facts
    return deriving.bury(_versions(project, meant)) if meant else []


def _versions(project: Project, facts: Iterable[UUID]) -> QuerySet[Fact]:
    return deriving.versions_of(project.pk, Fact.objects.filter(project=project, pk__in=facts))


def remove(project: Project, found: Found) -> int:
    """Removes them, and returns how many facts went, earlier versions included."""
    meant = Fact.objects.filter(project=project, pk__in=found.facts)
    gone = meant.delete()[1].get(Fact._meta.label, 0)
    deriving.untell(FactSource.objects.filter(project=project, pk__in=found.told))
    return gone
