"""A long history does not slow down a memory cycle or a prompt."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection

from chat.models import Session
from memory.layers import digests
from memory.layers.bank import item_tokens
from memory.layers.bank_cache import rendered_bank
from memory.layers.periods import Granularity, parent_key
from memory.models import Entry, EntryStatus
from memory.models.cursors import mark_layers_changed
from projects.models import Project
from projects.services import create_project

pytestmark = pytest.mark.timeout(1_800)

END = datetime(2026, 6, 1, 9, tzinfo=UTC)
A_DAY = 7  # conversations
DAYS, LOOKS = 20, 60
SUMMARY_TEMPLATE = (
    "- Ana: “Build {0} takes {0} minutes, and team {1} owns it.”\n- Ben: “The rollback is next.”"
)


def settled(owner, conversations: int, name: str) -> Project:
    """A project with so many conversations before END, all rolled up into months.

    Its budget is so small that whatever is old enough rolls, with a short history as with a long.
    """
    project = create_project(owner, name=name, bank_max_tokens=300)
    digests: dict[tuple[Granularity, str], Entry] = {}
    talks = list(create_entries(project, owner, END - timedelta(days=60), conversations))
    for entry in talks:
        entry.state, entry.parent = EntryStatus.ABSORBED, above(entry, digests)
    for digest in digests.values():
        digest.save()
    Session.objects.bulk_create(entry.session for entry in talks)
    Entry.objects.bulk_create(talks)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return project


def above(entry: Entry, digests: dict[tuple[Granularity, str], Entry]) -> Entry | None:
    """The digest of the period that holds the entry's, with those above it."""
    layer = Granularity(entry.granularity)
    if layer.older is None:
        return None
    place = layer.older, parent_key(layer, entry.period_key)
    if place not in digests:
        digest = written(entry.project, *place, entry.last_source_at)
        digest.parent = above(digest, digests)
        digest.state = EntryStatus.ABSORBED if digest.parent else EntryStatus.LIVE
        # Those above are saved first.
        digests[place] = digest
    return digests[place]


def create_entries(
    project: Project, owner, before: datetime, conversations: int
) -> Iterator[Entry]:
    """Conversation entries, A_DAY of them on each day before a moment; nothing is saved."""
    for number in range(conversations):
        at = before - timedelta(days=1 + number // A_DAY, minutes=number % A_DAY)
        session = Session(
            project=project, creator=owner, title=f"Talk {number}", created_at=at, last_seq=4
        )
        entry = written(project, Granularity.CONVERSATION, at.date().isoformat(), at)
        entry.session, entry.first_seq, entry.last_seq = session, 1, 4
        entry.tokens = item_tokens(entry.as_item())
        yield entry


def written(project: Project, layer: Granularity, key: str, at: datetime) -> Entry:
    return Entry(
        project=project,
        granularity=layer,
        period_key=key,
        zone="UTC",
        summary=SUMMARY_TEMPLATE.format(at.day, at.month),
        tokens=40,
        message_count=4,
        first_source_at=at,
        last_source_at=at,
        written_by="extractive",
    )


def a_day_more(project: Project, owner, now: datetime) -> None:
    for entry in create_entries(project, owner, now, A_DAY):
        entry.session.save()
        entry.save()
    mark_layers_changed(project.pk)


# Not in one transaction: what is claimed, written and committed is measured too.
@pytest.mark.django_db(transaction=True)
def test_a_day_settles_and_a_bank_is_read_as_fast_after_ten_times_the_history(
    owner, timed, compare
):
    projects = [settled(owner, 500, "Young"), settled(owner, 5_000, "Old")]
    settling: list[list[float]] = [[], []]
    reading: list[list[float]] = [[], []]
    for day in range(DAYS):
        now = END + timedelta(days=day)
        for project, times in zip(projects, settling, strict=True):
            a_day_more(project, owner, now)
            times.append(timed(partial(digests.update_layers, project.pk, now)))
    for _ in range(LOOKS):
        for project, times in zip(projects, reading, strict=True):
            times.append(timed(partial(rendered_bank, project)))
    ratios = (
        compare("a day settles: after 500 conversations, 5,000", *settling, 1.3),
        compare("the bank is read: after 500 conversations, 5,000", *reading, 1.3),
    )
    assert max(ratios) <= 1.3
