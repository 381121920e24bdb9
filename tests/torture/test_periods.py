"""Every instant, in every zone there is, falls in exactly one day, week and month."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import event, given, settings
from hypothesis import strategies as st

from memory.layers import periods
from memory.layers.periods import Granularity

CONVERSATION, DAY, WEEK, MONTH = Granularity
LAYERS = (DAY, WEEK, MONTH)
FIRST_YEAR, LAST_YEAR = 1970, 2100
ONE_DAY = timedelta(days=1)

zones = st.sampled_from(sorted(available_timezones()))
years = st.integers(FIRST_YEAR, LAST_YEAR)
anywhere = st.datetimes(datetime(FIRST_YEAR, 1, 1), datetime(LAST_YEAR, 12, 31)).map(
    lambda naive: naive.replace(tzinfo=UTC)
)
# Seconds: as often within the hour as within four days.
nearby = st.integers(-3_600, 3_600) | st.integers(-350_000, 350_000)


@lru_cache(maxsize=4_000)
def clock_changes(name: str, year: int) -> tuple[datetime, ...]:
    """The instants of a year at which a zone's clock is set, to the second."""
    zone = ZoneInfo(name)
    start = datetime(year, 1, 1, tzinfo=UTC)
    weeks = [start + timedelta(weeks=week) for week in range(54)]
    offsets = [week.astimezone(zone).utcoffset() for week in weeks]
    pairs = zip(weeks, weeks[1:], strict=False)
    return tuple(
        _change(zone, *pair)
        for pair, before, after in zip(pairs, offsets, offsets[1:], strict=False)
        if before != after
    )


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second between two instants at which the clock is no longer what it was."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=1) // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def turn_of_the_year(name: str, year: int) -> datetime:
    """The midnight at which ISO week 1 of a year begins in a zone, after week 52 or 53."""
    monday = date.fromisocalendar(year, 1, 1)
    return datetime(monday.year, monday.month, monday.day, tzinfo=ZoneInfo(name)).astimezone(UTC)


@st.composite
def instants(draw, name: str) -> datetime:
    """Anywhere in 130 years, around a change of the clock, or around the turn of an ISO year."""
    kind = draw(st.sampled_from(("anywhere", "change of the clock", "turn of the year")))
    changes = clock_changes(name, draw(years)) if kind == "change of the clock" else ()
    if changes:
        around = draw(st.sampled_from(changes))
    elif kind == "turn of the year":
        around = turn_of_the_year(name, draw(years))
    else:
        kind, around = "anywhere", draw(anywhere)
    event(kind)
    return around + timedelta(seconds=draw(nearby))


def key_of(instant: datetime, zone: ZoneInfo, layer: Granularity) -> str:
    return periods.ancestor_key(CONVERSATION, periods.day_key(instant, zone), layer)


def following(layer: Granularity, key: str, steps: int) -> str:
    """The period so many steps of ±1 from this one."""
    first, last = periods.days(layer, key)
    day = last + ONE_DAY if steps > 0 else first - ONE_DAY
    return periods.ancestor_key(DAY, day.isoformat(), layer)


def all_days(layer: Granularity, key: str) -> list[str]:
    first, last = periods.days(layer, key)
    return [(first + n * ONE_DAY).isoformat() for n in range((last - first).days + 1)]


def test_every_instant_of_every_zone_is_in_one_period_of_each_layer_and_in_no_other(scale, tally):
    observed: set[str] = set()

    @settings(max_examples=scale(10_000, 300), deadline=None)
    @given(st.data(), zones)
    def holds(data, name):
        zone = ZoneInfo(name)
        instant = data.draw(instants(name))
        today = instant.astimezone(zone).date()
        other = instant + timedelta(seconds=data.draw(nearby))
        for layer in LAYERS:
            key = key_of(instant, zone, layer)
            around = [following(layer, key, -1), key, following(layer, key, 1)]
            spans = [periods.days(layer, message) for message in around]
            assert [first <= today <= last for first, last in spans] == [False, True, False]
            # Two instants share a period exactly if both of their days are its days.
            first, last = spans[1]
            shared = first <= other.astimezone(zone).date() <= last
            assert (key_of(other, zone, layer) == key) == shared
        observed.add(name)
        tally("instants, each in one day, week and month")

    holds()
    tally("time zones", len(observed))


def test_the_periods_of_each_layer_follow_each_other_without_gap_or_overlap(scale, tally):
    @settings(max_examples=scale(10_000, 300), deadline=None)
    @given(st.dates(date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31)))
    def holds(day):
        for layer in LAYERS:
            key = periods.ancestor_key(DAY, day.isoformat(), layer)
            after = following(layer, key, 1)
            assert periods.days(layer, key)[1] + ONE_DAY == periods.days(layer, after)[0]
            assert following(layer, after, -1) == key
            assert key < after
            # Each of its days is in it, and its first and last days have nothing beyond them.
            assert {periods.ancestor_key(DAY, item, layer) for item in all_days(layer, key)} == {
                key
            }
            tally("periods next to each other")

    holds()


def test_a_period_is_made_of_whole_periods_of_the_layer_below(scale, tally):
    @settings(max_examples=scale(10_000, 300), deadline=None)
    @given(st.dates(date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31)))
    def holds(day):
        for below, layer in ((DAY, WEEK), (WEEK, MONTH)):
            key = periods.ancestor_key(DAY, day.isoformat(), layer)
            within = all_days(layer, key)
            parts = dict.fromkeys(periods.ancestor_key(DAY, item, below) for item in within)
            assert [item for part in parts for item in all_days(below, part)] == within
            assert {periods.parent_key(below, part) for part in parts} == {key}
            assert len(parts) in {WEEK: (7,), MONTH: (4, 5)}[layer]
            tally("periods made of whole ones")

    holds()


def test_a_day_that_a_clock_shows_twice_or_never_is_no_exception():
    # The clock of St. John's went back from 00:01 to 23:01: midnight came twice.
    zone, midnight = ZoneInfo("America/St_Johns"), datetime(2006, 10, 29, 2, 30, tzinfo=UTC)
    seconds = (midnight + timedelta(seconds=second) for second in (-1, 0, 59, 60, 3_599, 3_600))
    days = [periods.day_key(second, zone) for second in seconds]
    assert days == [f"2006-10-{day}" for day in (28, 29, 29, 28, 28, 29)]
    # Kwajalein went over the date line and had no 21 August 1993.
    zone, midnight = ZoneInfo("Pacific/Kwajalein"), datetime(1993, 8, 21, 12, tzinfo=UTC)
    days = [periods.day_key(midnight + timedelta(seconds=second), zone) for second in (-1, 0)]
    assert days == ["1993-08-20", "1993-08-22"]
