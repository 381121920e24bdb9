from memory.models.chunks import Chunk, Corpus, IndexCursor, SourceType, Vector
from memory.models.cursors import Cursor, Ladder
from memory.models.entries import Entry, EntryRevision, State

__all__ = [
    "Chunk",
    "Corpus",
    "Cursor",
    "Entry",
    "EntryRevision",
    "IndexCursor",
    "Ladder",
    "SourceType",
    "State",
    "Vector",
]
