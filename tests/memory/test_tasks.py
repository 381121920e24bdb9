"""A message may be lost, late or come twice: the database says what there is to do."""

from datetime import UTC, datetime

import pytest

from memory import tasks
from memory.layers import conversations, cycle
from memory.models import Cursor, Entry, Nudge
from memory.models.cursors import mark_layers_changed
from tests.memory.daily_entries import START, remember
from tests.memory.test_digests import talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def small(project):
    project.bank_max_tokens = 300
    project.save()
    return project


@pytest.fixture
def sent(monkeypatch) -> list[str]:
    """The projects that a worker was asked to look through."""
    dispatched: list[str] = []
    monkeypatch.setattr(
        tasks.update_layers, "apply_async", lambda args, **options: dispatched.extend(args)
    )
    return dispatched


def test_the_layers_settle_after_the_last_conversation(small, owner, sent):
    first, last = (talk(small, owner, day) for day in range(2))
    tasks.summarise_session(str(first.pk))
    assert sent == []
    tasks.summarise_session(str(last.pk))
    assert sent == [str(small.pk)]


def test_one_that_comes_twice_writes_nothing_twice(small, owner, sent):
    session = talk(small, owner, 0)
    for _ in range(2):
        tasks.summarise_session(str(session.pk))
    assert Entry.objects.count() == 1


def test_layers_do_not_settle_while_a_conversation_waits(small, owner):
    for _ in range(12):
        remember(small, owner, "- It was talked over at length. " * 6)
    mark_layers_changed(small.pk)
    session = talk(small, owner, 0)
    tasks.update_layers(str(small.pk))
    assert not Entry.objects.filter(granularity="day").exists()
    assert conversations.summarise(session.pk, datetime.now(UTC)) is not None
    tasks.update_layers(str(small.pk))
    assert Entry.objects.filter(granularity="day").count() == 1
    assert not Nudge.objects.exists()


def test_a_cycle_without_work_asks_the_database_once(
    small,
    owner,
    django_assert_num_queries,
):
    talk(small, owner, 0)
    now = START.replace(year=2027)
    cycle.run(now)
    assert Cursor.objects.get().unsummarised_messages == 0
    with django_assert_num_queries(1):
        cycle.run(now)
