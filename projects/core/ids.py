"""Primary keys: UUIDv7, which sort by their creation time."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """Return a new UUIDv7 (RFC 9562, section 5.7)."""
    return uuid7()
