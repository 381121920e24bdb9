"""The planner loads all required nodes, and their number does not grow with the history."""

import random
from datetime import timedelta

import pytest
from django.db.models import Q

from chat.conversations import edits
from chat.models import Message
from memory.layers import cycle, digests, ladder
from memory.models import Entry, EntryStatus
from memory.models.cursors import mark_layers_changed
from memory.moderation import entry_operations
from projects.core.errors import DomainError
from tests.memory.test_digests import START, talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def small(project):
    project.bank_max_tokens = 300
    project.save()
    return project


def everything(project) -> list[ladder.LadderNode]:
    return list(digests._read_nodes(project.entries.all()))


def plans(nodes: list[ladder.LadderNode], now) -> list:
    """All that may be asked of the plan, at several moments and budgets."""
    rolls = [
        ladder.roll_ups(nodes, now + timedelta(days=later), budget)
        for later in (0, 8, 40)
        for budget in (0, 150)
    ]
    return [ladder.rewrites(nodes), *rolls]


def disturb(project, owner, day: int, chance: random.Random) -> None:
    """What people do: they say more, late too, correct, delete, pin, hide and take in again."""
    talk(project, owner, day, hour=1)
    talk(project, owner, max(0, day - chance.randrange(40)), hour=2)
    messages = list(Message.objects.filter(project=project, deleted_at=None).order_by("pk"))
    edits.edit(chance.choice(messages), f"The build took {chance.randrange(99)} minutes.", owner)
    edits.delete(chance.choice(messages))
    settled = project.entries.filter(withheld=False).exclude(state=EntryStatus.STALE)
    if entries := list(settled.order_by("pk")):
        entry = chance.choice(entries)
        act = chance.choice((entry_operations.set_hidden, entry_operations.pin, None))
        if act is None:
            text = f"{entry.summary} Corrected on day {day}."
            refusing(lambda: entry_operations.edit(entry, text, owner))
        elif act is entry_operations.set_hidden or not entry.pinned:
            refusing(lambda: act(entry, entry.state != EntryStatus.HIDDEN))


def refusing(act) -> None:
    try:
        act()
    except DomainError:
        return


@pytest.mark.parametrize("seed", range(2))
def test_the_plan_is_that_over_every_entry(small, owner, monkeypatch, seed):
    plannable_nodes, observed_nodes = digests.plannable_nodes, []

    def compared(project):
        unsettled, all_nodes = plannable_nodes(project), everything(project)
        now = START + timedelta(days=day)
        assert plans(unsettled, now) == plans(all_nodes, now)
        look = ladder.next_due_at(digests.visible_nodes(project), now, 200)
        assert look == ladder.next_due_at(all_nodes, now, 200)
        observed_nodes.append(len(all_nodes) - len(unsettled))
        return unsettled

    monkeypatch.setattr(digests, "plannable_nodes", compared)
    chance = random.Random(seed)
    for day in range(0, 60, 5):
        disturb(small, owner, day, chance)
        compared(small)
        cycle.run(START + timedelta(days=day, hours=6))
        compared(small)
    assert max(observed_nodes) > 5


def test_complete_layers_are_not_read_again(small, owner):
    for day in range(0, 90, 3):
        talk(small, owner, day)
    cycle.run(START + timedelta(days=90))
    few = Q(state__in=(EntryStatus.LIVE, EntryStatus.FADED))
    assert len(digests.plannable_nodes(small)) == Entry.objects.filter(few).count() < 20
    assert Entry.objects.count() > 40


def test_reading_takes_three_queries_however_much_there_is(
    small,
    owner,
    django_assert_max_num_queries,
):
    for day in range(12):
        talk(small, owner, day)
    cycle.run(START + timedelta(days=16))
    talk(small, owner, 3, hour=5)
    mark_layers_changed(small.pk)
    Entry.objects.filter(granularity="day").update(state=EntryStatus.STALE)
    with django_assert_max_num_queries(3):
        digests.plannable_nodes(small)


def test_a_stale_entry_holds_back_its_month_through_the_layers_between(project, chat, remember):
    month = remember(
        "- A month", granularity="month", period_key="2026-03", state=EntryStatus.STALE
    )
    standing = {"state": EntryStatus.ABSORBED}
    week = remember("- A week", None, "week", period_key="2026-W11", parent=month, **standing)
    day = remember("- A day", None, "day", parent=week, **standing)
    entry = remember("- Said", chat, state=EntryStatus.STALE, parent=day)
    assert ladder.rewrites(digests.plannable_nodes(project)) == []
    Entry.objects.filter(pk=entry.pk).update(state=EntryStatus.ABSORBED)
    [roll] = ladder.rewrites(digests.plannable_nodes(project))
    assert (roll.digest, roll.children) == (month.pk, (week.pk,))
