from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.layers import periods
from memory.layers.periods import Granularity

CONVERSATION, DAY, WEEK, MONTH = Granularity
ZONES = [
    "UTC",
    "Europe/Vienna",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Pacific/Apia",  # skipped 30 December 2011
    "Pacific/Kiritimati",
    "Australia/Lord_Howe",  # half an hour of daylight saving
]
zones = st.sampled_from(ZONES).map(ZoneInfo)
anywhere = st.datetimes(
    min_value=datetime(1971, 1, 1), max_value=datetime(2099, 12, 31), timezones=st.just(UTC)
)
# The hours around the changes of the clock and the turn of the year.
critical = st.builds(
    lambda start, minutes: start + timedelta(minutes=minutes),
    st.sampled_from(
        [
            datetime(2026, 3, 29, 1, tzinfo=UTC),
            datetime(2026, 10, 25, 1, tzinfo=UTC),
            datetime(2026, 11, 1, 6, tzinfo=UTC),
            datetime(2011, 12, 30, 10, tzinfo=UTC),
            datetime(2020, 12, 31, 23, tzinfo=UTC),
            datetime(2027, 1, 1, 0, tzinfo=UTC),
            datetime(2024, 12, 30, 0, tzinfo=UTC),
        ]
    ),
    st.integers(min_value=-3_000, max_value=3_000),
)


def test_the_layers_are_in_order():
    assert [granularity.older for granularity in Granularity] == [DAY, WEEK, MONTH, None]
    assert list(Granularity) == ["conversation", "day", "week", "month"]


@given(anywhere | critical, zones)
def test_every_instant_falls_in_exactly_one_day_week_and_month(instant, zone):
    day = periods.day_key(instant, zone)
    key = day
    for granularity in (DAY, WEEK, MONTH):
        key = periods.parent_key(Granularity(list(Granularity)[granularity.depth - 1]), key)
        assert key == periods.ancestor_key(CONVERSATION, day, granularity)
        first, last = periods.days(granularity, key)
        assert first <= date.fromisoformat(day) <= last
        # The neighbours begin where this one ends, so that no other period holds the day.
        before, after = (first - timedelta(days=1)).isoformat(), last + timedelta(days=1)
        for neighbour in (before, after.isoformat()):
            assert periods.ancestor_key(DAY, neighbour, granularity) != key


@given(anywhere | critical, zones)
def test_keys_sort_as_time_does(instant, zone):
    earlier, later = (
        periods.day_key(moment, zone) for moment in (instant, instant + timedelta(days=9))
    )
    for granularity in (DAY, WEEK, MONTH):
        assert periods.ancestor_key(DAY, earlier, granularity) <= periods.ancestor_key(
            DAY, later, granularity
        )


@pytest.mark.parametrize(
    ("day", "week", "month"),
    [
        ("2026-11-21", "2026-W47", "2026-11"),
        ("2020-12-31", "2020-W53", "2020-12"),
        ("2021-01-03", "2020-W53", "2020-12"),
        ("2024-12-30", "2025-W01", "2025-01"),
        ("2023-01-01", "2022-W52", "2022-12"),
        ("2026-03-31", "2026-W14", "2026-04"),
        ("2026-04-05", "2026-W14", "2026-04"),
    ],
)
def test_a_week_belongs_to_the_month_of_its_thursday(day, week, month):
    assert periods.week_of(day) == week
    assert periods.month_of(week) == month


def test_the_same_instant_is_another_day_elsewhere():
    instant = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    assert periods.day_key(instant, ZoneInfo("UTC")) == "2026-11-21"
    assert periods.day_key(instant, ZoneInfo("Europe/Vienna")) == "2026-11-22"


def test_an_instant_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        periods.day_key(datetime(2026, 1, 1), ZoneInfo("UTC"))


def test_a_month_has_no_parent():
    with pytest.raises(ValueError, match="no older"):
        periods.parent_key(MONTH, "2026-11")


@pytest.mark.parametrize(
    ("granularity", "key", "expected"),
    [
        (CONVERSATION, "2026-03-12", "Thu 12 Mar 2026"),
        (DAY, "2026-03-12", "Thu 12 Mar 2026"),
        (WEEK, "2026-W10", "Week 10, 2–8 Mar 2026"),
        (WEEK, "2026-W14", "Week 14, 30 Mar – 5 Apr 2026"),
        (WEEK, "2020-W53", "Week 53, 28 Dec 2020 – 3 Jan 2021"),
        (MONTH, "2026-03", "March 2026"),
    ],
)
def test_labels_are_for_people(granularity, key, expected):
    assert periods.label(granularity, key) == expected
