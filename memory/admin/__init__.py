"""Memory in the admin."""

from memory.admin import blocks, entries, facts, recall, records, webhooks, work

__all__ = ["blocks", "entries", "facts", "recall", "records", "webhooks", "work"]
