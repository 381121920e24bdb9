"""Times as exports write them, and which of them can be trusted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from chat.importers.base import ImportedMessage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers above this are milliseconds: as seconds they would lie beyond the year 5000.
LAST_SECOND = 10**11
# How far the clock of who said it may be ahead of ours.
AHEAD = timedelta(days=1)


def moment(value: object) -> datetime | None:
    """The instant of an ISO 8601 text (without a zone: UTC), or of the seconds or milliseconds
    since 1970, in UTC. None for what is none.
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


def trusted(at: datetime | None) -> datetime | None:
    """`at`, unless nothing can have been said then: before 1970, or more than a day from now."""
    return at if at is not None and EPOCH <= at <= timezone.now() + AHEAD else None


def nearest(*times: datetime | None) -> datetime:
    """The first of `times` that can be trusted, else now."""
    return next(filter(None, map(trusted, times)), None) or timezone.now()


def settled(
    messages: Sequence[ImportedMessage], begun: datetime | None
) -> Iterator[ImportedMessage]:
    """`messages`, those whose time cannot be trusted at that of the one before; the first at that
    of their conversation, which has `begun` then or else with the earliest of them.
    """
    times = [at for message in messages if (at := trusted(message.at))]
    before = nearest(begun, min(times, default=None))
    for message in messages:
        before = trusted(message.at) or before
        yield message if message.at == before else replace(message, at=before)
