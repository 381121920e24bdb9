"""Admin pages of memory."""

from memory.admin import background_work, entries, facts, imports, records, webhooks

__all__ = ["background_work", "entries", "facts", "imports", "records", "webhooks"]
