"""What was forgotten is forgotten once more, in a database that is older than that."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID

from django.db import transaction

from memory.forgetting import Scope, forget
from memory.forgetting.buried import Buried, named_by, user_of
from memory.forgetting.graves import Stone
from memory.models import Grave, Tombstone
from projects.deletion import delete_project
from projects.models import Project

# Lines that are taken together: those of one project in one transaction.
AT_ONCE = 5_000


def replay(stones: Iterable[Stone]) -> Counter[str]:
    """Forgets what `stones` name and this database still has; returns how many of which kind it
    did not know as forgotten.

    What was never here is no error: its tombstone keeps it out. May be repeated.
    """
    told: Counter[str] = Counter()
    rest = iter(stones)
    while some := list(islice(rest, AT_ONCE)):
        for project, graves in _by_project(some):
            told += _replay_in(project, graves)
    return told


def _by_project(stones: Iterable[Stone]) -> Iterator[tuple[Project, list[Stone]]]:
    found = defaultdict(list)
    for stone in stones:
        found[UUID(stone.project)].append(stone)
    for project in Project.objects.filter(pk__in=found).order_by("pk"):
        yield project, found[project.pk]


def _replay_in(project: Project, stones: list[Stone]) -> Counter[str]:
    if any(stone.kind == Grave.PROJECT for stone in stones):
        delete_project(project)
        return Counter({Grave.PROJECT.value: 1})
    new = _unknown(project, stones)
    with transaction.atomic():
        if buried := named_by((stone.kind, stone.subject) for stone in new):
            forget(project, Scope(buried=buried))
        for stone in new:
            if stone.kind == Grave.USER:
                forget(project, Scope(buried=Buried(user=user_of(stone.subject))))
        graves = [
            Tombstone(project=project, kind=stone.kind, subject=stone.subject, at=stone.at)
            for stone in new
        ]
        Tombstone.objects.bulk_create(graves, batch_size=1_000, ignore_conflicts=True)
    return Counter(stone.kind for stone in new)


def _unknown(project: Project, stones: list[Stone]) -> list[Stone]:
    """Those of which the database has no tombstone: they are younger than it is."""
    rows = Tombstone.objects.filter(
        project=project, subject__in=[stone.subject for stone in stones]
    )
    known = set(rows.values_list("kind", "subject"))
    return [stone for stone in stones if (stone.kind, stone.subject) not in known]
