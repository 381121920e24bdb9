"""The picture of the layers: today's, another day's, and the tree for those who do not look."""

from datetime import datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from chat.conversations.generation import finalise
from chat.conversations.messages import begin_reply
from memory.models import Entry, EntryState, EntryStatus
from memory.views.charts.layers_over_time import MAX_POINTS, MAX_ROWS, layers_over_time
from memory.views.layers_chart import day_range
from tests.html import compact

pytestmark = pytest.mark.django_db


def days_ago(number: int) -> datetime:
    """Counted when a test asks, because a run of the tests may pass midnight."""
    return timezone.now() - timedelta(days=number)


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
                since=days_ago(number),
                state=state,
                parent_id=parent,
                pinned=False,
                withheld=False,
                revision=row.revision,
            )
    return entry


def _settled(entry, day):
    return [(day, EntryStatus.LIVE, None), (entry, EntryStatus.ABSORBED, day.pk)]


def on(number: int) -> str:
    return days_ago(number).date().isoformat()


def test_another_day_shows_what_stood_then(get_chart, then):
    today = get_chart()
    assert "A day about the replica" in today
    assert 'class="block day live"' in today
    before = get_chart(at=on(5))
    assert 'class="block conversation live"' in before
    assert 'class="block day' not in before
    assert "The replica stays seven days" in before
    assert "forgotten later are not counted" in before


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
    assert "a full bar is 180 tokens" in part
    assert "<figure" not in part


def test_the_tree_leads_from_the_digest_to_the_message(get_chart, then, chat):
    tree = get_chart(tree="")
    assert tree.index("A day about the replica") < tree.index("The replica stays seven days")
    assert f"/chats/{chat.pk}/?through=1#m1" in tree
    assert 'class="layer' not in tree


def test_the_tree_lists_no_discarded_reply(get_chart, then, chat):
    assert "through=2#m2" in get_chart(tree="")
    finalise(begin_reply(chat.messages.get(seq=1)), "It stays for ten days.", "complete", {})
    chat.messages.filter(seq=3).update(remembered=True)
    Entry.objects.filter(session=chat).update(last_seq=3)
    tree = get_chart(tree="")
    assert "It stays for ten days." in tree and "through=3#m3" in tree
    assert "through=2#m2" not in tree


def test_the_picture_costs_as_much_for_many_entries(
    get_chart, remember, day, django_assert_max_num_queries
):
    for number in range(1, 29):
        remember("- More", granularity="day", period_key=f"2026-01-{number:02}")
    for query in ({}, {"tree": ""}, {"at": on(0)}):
        with django_assert_max_num_queries(26):
            get_chart(**query)


def tokens_by_day(project) -> dict[int, dict[str, int]]:
    """The tokens of each layer, by the number of days ago."""
    drawn = layers_over_time(project, day_range(project, ""))
    return {(drawn.days.last - point.day).days: point.tokens for point in drawn.points}


def test_the_picture_has_the_tokens_of_each_layer_on_each_day(project, then, day):
    tokens = tokens_by_day(project)
    assert list(tokens) == list(range(10, -1, -1))
    assert tokens[10] == tokens[4] == {"conversation": then.tokens}
    assert tokens[3] == tokens[0] == {"day": day.tokens}


@pytest.mark.parametrize(
    ("change", "layers"),
    [
        ({"state": EntryStatus.FADED}, ["day"]),
        ({"state": EntryStatus.STALE}, ["day"]),
        # A digest that is not sent is replaced by its sources.
        ({"state": EntryStatus.HIDDEN}, ["conversation"]),
        ({"withheld": True}, ["conversation"]),
    ],
)
def test_the_picture_counts_what_may_be_sent(project, then, day, change, layers):
    row = EntryState.objects.filter(entry=day).get()
    changed = {"since": days_ago(1), "pk": None} | change
    EntryState.objects.create(
        **{
            name: changed.get(name, getattr(row, name))
            for name in (
                *("project_id", "entry_id", "parent_id", "since", "state"),
                *("pinned", "withheld", "revision"),
            )
        }
    )
    tokens = tokens_by_day(project)
    assert list(tokens[2]) == ["day"]
    assert list(tokens[0]) == layers


def test_years_are_drawn_with_a_bounded_number_of_points(project, then):
    first = days_ago(3 * 365)
    EntryState.objects.filter(entry=then, since__lt=days_ago(9)).update(since=first)
    drawn = layers_over_time(project, day_range(project, ""))
    assert len(drawn.points) == MAX_POINTS
    assert (drawn.points[0].day, drawn.points[-1].day) == (first.date(), days_ago(0).date())
    assert len(drawn.rows) == MAX_ROWS
    assert all(0 <= float(tick.x) <= 100 for tick in drawn.ticks)
    assert drawn.ticks[0].label == date_format(first, "M Y")


def test_areas_lie_on_each_other_below_the_top(project, then):
    drawn = layers_over_time(project, day_range(project, ""))
    assert [area.layer for area in drawn.areas] == ["conversation", "day"]
    heights = [
        float(place.split()[1])
        for area in drawn.areas
        for place in area.path.strip("MZ").split(" L")
    ]
    assert min(heights) >= 0 and max(heights) == 100
    assert 0 < float(drawn.budget_y) < 100


def test_the_picture_has_a_table_and_its_own_textures(get_chart, then):
    page = compact(get_chart())
    figure = page.partition('<figure class="over-time">')[2].partition("</figure>")[0]
    assert 'fill="url(#texture-day)"' in figure
    head, body = figure.partition("<thead>")[2].split("</thead>")
    assert [name for name in ("Day", "Chats", "Days", "All tokens") if f">{name}</th>" in head]
    assert f"<td>{then.tokens}</td><td>0</td><td>{then.tokens}</td>" in body
    assert " style=" not in page and "<style" not in page


def test_a_project_of_one_day_has_no_picture_over_time(get_chart, entry):
    assert "<figure" not in get_chart()


def test_each_memory_is_listed_once(get_chart, remember, project, chat, day):
    waiting = remember("- Waits", chat, state=EntryStatus.PROPOSED, first_seq=3, last_seq=3)
    project.bank_max_tokens = 100
    project.save()
    for number in range(1, 9):
        remember(
            f"- {number} " + "More of it. " * 30,
            granularity="day",
            pinned=True,
            period_key=f"2026-01-{number:02}",
        )
    page = get_chart()
    for entry in Entry.objects.exclude(state=EntryStatus.ABSORBED):
        rows = page.count(f'/memory/{entry.pk}/"')
        assert rows == 1, entry.summary
    folded = compact(page).partition("<h2>Not sent (no room)")[0].rpartition("<")[2]
    assert folded.startswith("summary>")
    assert f'id="e-{waiting.pk}"' not in page


def test_an_entry_in_the_drawer_leads_down_and_up(client, owner, day, entry, chat):
    client.force_login(owner)
    drawer = client.get(reverse("entry", args=["billing", day.pk]), {"part": "drawer"})
    page_text = drawer.content.decode()
    assert "<html" not in page_text
    assert f'href="{reverse("entry", args=["billing", entry.pk])}" data-drawer-link' in page_text
    below = client.get(reverse("entry", args=["billing", entry.pk]), {"part": "drawer"})
    assert f"/chats/{chat.pk}/?through=2#m2" in below.content.decode()
