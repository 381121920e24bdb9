"""Memory in the admin."""

from memory.admin import entries, facts, recall, records, work

__all__ = ["entries", "facts", "recall", "records", "work"]
