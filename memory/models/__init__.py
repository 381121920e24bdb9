from memory.models.activity import Activity, Reason, Verb
from memory.models.banks import RenderedBank
from memory.models.blocks import Block
from memory.models.calls import Call, CallKind
from memory.models.chunks import Chunk, Corpus, IndexCursor, SourceType, Vector
from memory.models.cursors import Cursor, EntriesChanged, Ladder, Nudge
from memory.models.entries import Entry, EntryRevision, EntryState, State, Waiting
from memory.models.facts import Fact, FactSource, Standing
from memory.models.tombstones import Grave, Tombstone
from memory.models.webhooks import Delivery, DeliveryState, Event, OffBecause, Webhook

__all__ = [
    "Activity",
    "Block",
    "Call",
    "CallKind",
    "Chunk",
    "Corpus",
    "Cursor",
    "Delivery",
    "DeliveryState",
    "EntriesChanged",
    "Entry",
    "EntryRevision",
    "EntryState",
    "Event",
    "Fact",
    "FactSource",
    "Grave",
    "IndexCursor",
    "Ladder",
    "Nudge",
    "OffBecause",
    "Reason",
    "RenderedBank",
    "SourceType",
    "Standing",
    "State",
    "Tombstone",
    "Vector",
    "Verb",
    "Waiting",
    "Webhook",
]
