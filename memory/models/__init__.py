from memory.models.cursors import Cursor, Ladder
from memory.models.entries import Entry, EntryRevision, State

__all__ = ["Cursor", "Entry", "EntryRevision", "Ladder", "State"]
