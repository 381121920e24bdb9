"""Repeat the forget requests that a tombstone file records, after an older backup was restored."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from django.db import transaction

from memory.forgetting.scope import ForgetScope, TombstoneScope
from memory.forgetting.service import forget
from memory.forgetting.tombstones import TombstoneRecord, parse_user
from memory.models import Tombstone, TombstoneKind
from projects.models import Project
from projects.services import delete_project

# The number of records read at once. Those of one project are replayed in one transaction.
BATCH_SIZE = 5_000


def replay(records: Iterable[TombstoneRecord]) -> Counter[str]:
    """Forget everything that `records` name. Return, by kind, how many were new to this database.

    A record whose object is not in this database is no error: its tombstone prevents a later
    import. Records of projects that are not in this database are skipped. A replay may be repeated.
    """
    counts: Counter[str] = Counter()
    remaining = iter(records)
    while batch := list(islice(remaining, BATCH_SIZE)):
        groups = defaultdict(list)
        for record in batch:
            groups[UUID(record.project)].append(record)
        for project in Project.objects.filter(pk__in=groups).order_by("pk"):
            counts += replay_in_project(project, groups[project.pk])
    return counts


def replay_in_project(project: Project, records: list[TombstoneRecord]) -> Counter[str]:
    if any(record.kind == TombstoneKind.PROJECT for record in records):
        delete_project(project)
        return Counter({TombstoneKind.PROJECT.value: 1})
    subjects = [record.subject for record in records]
    rows = Tombstone.objects.filter(project=project, subject__in=subjects)
    known = set(rows.values_list("kind", "subject"))
    new = [record for record in records if (record.kind, record.subject) not in known]
    with transaction.atomic():
        scope = TombstoneScope.from_subjects((record.kind, record.subject) for record in new)
        if scope:
            forget(project, ForgetScope(tombstones=scope))
        for record in new:
            if record.kind == TombstoneKind.USER:
                user, before = parse_user(record.subject)
                scope = TombstoneScope(user=user, before=before)
                forget(project, ForgetScope(tombstones=scope))
        tombstones = [
            Tombstone(project=project, kind=record.kind, subject=record.subject, at=record.at)
            for record in new
        ]
        Tombstone.objects.bulk_create(tombstones, batch_size=1_000, ignore_conflicts=True)
    return Counter(record.kind for record in new)
