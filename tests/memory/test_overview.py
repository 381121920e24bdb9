"""A project's home: what is counted, by week and by layer, and for whom."""

from datetime import UTC, date, datetime

import pytest
from django.urls import reverse

from memory.layers.statistics import WEEKS_SHOWN, MemoryStatistics
from memory.models import Entry

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)


def test_weeks_begin_with_the_first_in_which_there_was_something(project, entry):
    weeks = MemoryStatistics(project, NOW).weeks
    assert [(week.monday, week.messages) for week in weeks] == [
        (date(2026, 3, 9), 2),
        (date(2026, 3, 16), 0),
    ]


def test_a_week_is_one_of_the_projects_zone(project, entry):
    # Still Sunday in New York.
    Entry.objects.update(last_source_at=datetime(2026, 3, 16, 1, tzinfo=UTC))
    project.timezone = "America/New_York"
    assert [week.messages for week in MemoryStatistics(project, NOW).weeks] == [2, 0]


def test_an_empty_project_has_its_present_week(project):
    [week] = MemoryStatistics(project, NOW).weeks
    assert (week.monday, week.messages) == (date(2026, 3, 16), 0)
    assert MemoryStatistics(project, NOW).layers == []


def test_no_more_weeks_than_can_be_read(project, entry, remember):
    Entry.objects.update(last_source_at=datetime(2024, 1, 1, tzinfo=UTC))
    at = datetime(2025, 9, 24, tzinfo=UTC)
    remember("- More", entry.session, first_seq=3, last_seq=4, last_source_at=at)
    assert len(MemoryStatistics(project, NOW).weeks) == WEEKS_SHOWN


def test_the_share_kept_is_that_of_the_audits(project, day, entry):
    day.particulars = 8
    day.losses = [{"kind": "name", "text": "Ana"}, {"kind": "more", "text": "1"}]
    day.save()
    spoken, digests = MemoryStatistics(project, NOW).layers
    assert (spoken.granularity, spoken.entries, spoken.kept) == ("conversation", 1, None)
    assert (digests.granularity, digests.entries, digests.kept) == ("day", 1, 0.75)


def test_the_page_costs_as_much_for_many(
    client, viewer, remember, day, django_assert_max_num_queries
):
    client.force_login(viewer)
    for number in range(1, 29):
        remember("- More", granularity="day", period_key=f"2026-01-{number:02}", particulars=3)
    # The rendered bank is kept from now on.
    client.get(reverse("overview", args=["billing"]))
    with django_assert_max_num_queries(25):
        page = client.get(reverse("overview", args=["billing"])).content.decode()
    assert "Members" in page
    assert "100 %" in page
    part = client.get(reverse("overview", args=["billing"]), {"part": "lately"}).content.decode()
    assert "<html" not in part


def test_a_stranger_gets_404(client, stranger, project):
    client.force_login(stranger)
    assert client.get(reverse("overview", args=["billing"])).status_code == 404
