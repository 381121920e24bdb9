"""The picture of the layers: today's, another day's, and the tree for those who do not look."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from memory.models import EntryState, EntryStatus

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def get_chart(client, owner):
    client.force_login(owner)

    def get(**query) -> str:
        answer = client.get(reverse("memory", args=["billing"]), query)
        assert answer.status_code == 200
        return answer.content.decode()

    return get


@pytest.fixture
def then(remember, chat, day, entry):
    """A conversation that stood alone ten days ago, and settled into a day three days ago."""
    EntryState.objects.all().delete()
    for number, rows in ((10, [(entry, EntryStatus.LIVE, None)]), (3, _settled(entry, day))):
        for row, state, parent in rows:
            EntryState.objects.create(
                project_id=row.project_id,
                entry=row,
                since=NOW - timedelta(days=number),
                state=state,
                parent_id=parent,
                pinned=False,
                withheld=False,
                revision=row.revision,
            )
    return entry


def _settled(entry, day):
    return [(day, EntryStatus.LIVE, None), (entry, EntryStatus.ABSORBED, day.pk)]


def on(days_ago: int) -> str:
    return (NOW - timedelta(days=days_ago)).date().isoformat()


def test_another_day_shows_what_stood_then(get_chart, then):
    today = get_chart()
    assert "A day about the replica" in today
    assert 'class="block c-day day live"' in today
    before = get_chart(at=on(5))
    assert 'class="block c-conversation conversation live"' in before
    assert 'class="block c-day' not in before
    assert "The replica stays seven days" in before
    assert "without what was forgotten since" in before


def test_an_entry_hidden_since_is_not_shown_on_another_day(get_chart, then):
    then.state = EntryStatus.HIDDEN
    then.save()
    before = get_chart(at=on(5))
    assert "removed" in before
    assert 'class="block' not in before


@pytest.mark.parametrize("query", ["", "2019-01-01", "2099-01-01", "2026-02-31", "yesterday"])
def test_a_day_that_is_none_or_out_of_range_is_answered(get_chart, then, query):
    assert 'class="block' in get_chart(at=query)


def test_the_picture_alone_comes_without_the_page_around_it(get_chart, then):
    part = get_chart(at=on(5), part="picture")
    assert "<html" not in part
    assert 'data-scale="180"' in part


def test_the_tree_leads_from_the_digest_to_the_message(get_chart, then, chat):
    tree = get_chart(tree="")
    assert tree.index("A day about the replica") < tree.index("The replica stays seven days")
    assert f"/chats/{chat.pk}/?through=1#m1" in tree
    assert 'class="strata"' not in tree


def test_the_picture_costs_as_much_for_many_entries(
    get_chart, remember, day, django_assert_max_num_queries
):
    for number in range(1, 29):
        remember("- More", granularity="day", period_key=f"2026-01-{number:02}")
    for query in ({}, {"tree": ""}, {"at": on(0)}):
        with django_assert_max_num_queries(24):
            get_chart(**query)


def test_an_entry_in_the_drawer_leads_down_and_up(client, owner, day, entry, chat):
    client.force_login(owner)
    drawer = client.get(reverse("entry", args=["billing", day.pk]), {"part": "drawer"})
    page_text = drawer.content.decode()
    assert "<html" not in page_text
    assert f'href="{reverse("entry", args=["billing", entry.pk])}" data-drawer-link' in page_text
    below = client.get(reverse("entry", args=["billing", entry.pk]), {"part": "drawer"})
    assert f"/chats/{chat.pk}/?through=2#m2" in below.content.decode()
