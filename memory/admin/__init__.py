"""Memory in the admin."""

from memory.admin import entries, recall, records, work

__all__ = ["entries", "recall", "records", "work"]
