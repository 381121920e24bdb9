"""Primary keys: UUIDv7, which sort by the time they were made."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A new UUIDv7 (RFC 9562, section 5.7)."""
    return uuid7()
