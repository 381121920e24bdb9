"""Memory in the admin."""

from memory.admin import entries, records, work

__all__ = ["entries", "records", "work"]
