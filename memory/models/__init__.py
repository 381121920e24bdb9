from memory.models.activity import Activity, Reason, Verb
from memory.models.banks import RenderedBank
from memory.models.calls import Call, CallKind
from memory.models.cursors import Cursor, Ladder, Nudge
from memory.models.entries import Entry, EntryRevision, EntryState, State, Waiting
from memory.models.tombstones import Grave, Tombstone

__all__ = [
    "Activity",
    "Call",
    "CallKind",
    "Cursor",
    "Entry",
    "EntryRevision",
    "EntryState",
    "Grave",
    "Ladder",
    "Nudge",
    "Reason",
    "RenderedBank",
    "State",
    "Tombstone",
    "Verb",
    "Waiting",
]
