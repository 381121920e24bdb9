"""Memory in the admin."""

from memory.admin import blocks, entries, recall, records, work

__all__ = ["blocks", "entries", "recall", "records", "work"]
