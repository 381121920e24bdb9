"""Parsing of times in exports, and corrections of implausible ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from chat.importers.base import ImportedMessage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Larger numbers are milliseconds: as seconds they would be after the year 5000.
LAST_SECOND = 10**11
# How far the clock of the source may be ahead.
MAX_CLOCK_SKEW = timedelta(days=1)


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 text (UTC without a zone), or seconds or milliseconds since 1970.

    Returns None for anything else.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
            return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + timedelta(seconds=value if abs(value) < LAST_SECOND else value / 1000)
    except (ValueError, OverflowError):
        pass
    return None


def plausible_time(at: datetime | None) -> datetime | None:
    """Return `at`, or None if it is before 1970 or more than a day in the future."""
    return at if at is not None and EPOCH <= at <= timezone.now() + MAX_CLOCK_SKEW else None


def first_plausible(*times: datetime | None) -> datetime:
    """Return the first plausible time, or now."""
    return next(filter(None, map(plausible_time, times)), None) or timezone.now()


def with_plausible_times(
    messages: Sequence[ImportedMessage], start: datetime | None
) -> Iterator[ImportedMessage]:
    """Yield the messages; an implausible time is replaced by that of the previous message.

    The first message falls back to `start`, the beginning of the conversation, and then to the
    earliest plausible time of a message.
    """
    times = [at for message in messages if (at := plausible_time(message.at))]
    before = first_plausible(start, min(times, default=None))
    for message in messages:
        before = plausible_time(message.at) or before
        yield message if message.at == before else replace(message, at=before)
