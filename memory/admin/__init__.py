"""Memory in the admin."""

from memory.admin import blocks, entries, facts, imports, recall, records, webhooks, work

__all__ = ["blocks", "entries", "facts", "imports", "recall", "records", "webhooks", "work"]
