"""Times as exports write them."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers above this are milliseconds: as seconds they would lie beyond the year 5000.
LAST_SECOND = 10**11


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
