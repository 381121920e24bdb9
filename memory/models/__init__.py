from chat.models import Call, CallKind
from memory.models.activity import Activity, ActivityVerb, ModerationReason
from memory.models.blocks import Block
from memory.models.chunks import Chunk, Corpus, IndexCursor, SourceType, Vector
from memory.models.cursors import Cursor, EntriesChanged, Ladder, Nudge, RenderedBank
from memory.models.entries import Entry, EntryRevision, EntryState, EntryStatus, ReviewReason
from memory.models.facts import Fact, FactSource, FactStatus
from memory.models.files import File, FilePassage, FileRevision, FileState
from memory.models.tombstones import Tombstone, TombstoneKind
from memory.models.webhooks import Delivery, DeliveryState, Webhook, WebhookEvent, WebhookOffReason
