"""The columns that hold text, by model: those that forgetting empties, and the others."""

from django.db.models import Model

from chat.models import (
    Attachment,
    FileRemoval,
    Import,
    Message,
    ModelPrice,
    ModelProvider,
    Session,
)
from memory.forgetting.stores import STORES
from memory.models import (
    Activity,
    Call,
    Chunk,
    Cursor,
    Delivery,
    Entry,
    EntryRevision,
    EntryState,
    Fact,
    FileRevision,
    IndexCursor,
    Ladder,
    RenderedBank,
    Tombstone,
    Vector,
    Webhook,
)
from projects.models import Bucket, IdempotencyKey, Invitation, Project, ServerModels, Token

# Text columns that no text from a conversation reaches, by model: names, settings, digests, and
# messages that Strata writes itself.
NO_USER_TEXT: dict[type[Model], tuple[str, ...]] = {
    Project: (
        "name",
        "slug",
        "instructions",
        "custom_context",
        "chat_model",
        "system_model",
        "fallback_model",
        "timezone",
        "search_language",
    ),
    # What server administrators entered, and what the provider listed.
    ModelProvider: ("name", "address", "encrypted_key", "catalogue"),
    ModelPrice: ("model",),
    ServerModels: ("chat_model", "system_model"),
    Token: ("digest", "token_key", "name", "scopes"),
    # Digests and ids; a name with a number.
    IdempotencyKey: ("key", "request", "made"),
    Bucket: ("subject",),
    Invitation: ("digest", "username"),
    # Words that people give to chats, and the key of a link.
    Session: ("chat_model", "tags", "share_key"),
    Message: ("model",),
    Attachment: ("media_type", "sha256"),
    # The file is deleted when the import ends.
    Import: ("format", "file"),
    # Ids, and the name of a class.
    FileRemoval: ("path", "last_error"),
    Activity: (
        *("granularity", "period_key", "related", "reason", "receipt"),
        *("role_before", "role_after"),
    ),
    RenderedBank: ("text_hash", "fingerprint"),
    Call: ("model", "outcome"),
    Chunk: ("language",),
    # Hashes that cannot be read back; who knows a word can compute them.
    Vector: ("embedder",),
    IndexCursor: ("last_error",),
    Cursor: ("last_error",),
    Ladder: ("last_error",),
    Entry: ("period_key", "zone", "sources_hash", "written_by"),
    EntryRevision: ("written_by",),
    EntryState: ("state",),
    # A digest that cannot be read back.
    Fact: ("topic", "written_by"),
    # A type, and a digest of the content.
    FileRevision: ("media_type", "sha256"),
    Tombstone: ("subject",),
    # Addresses that owners entered, and error messages of Strata.
    Webhook: ("url", "salt", "previous_salt", "last_error"),
    # Ids and numbers.
    Delivery: ("data", "error"),
}


def text_columns() -> dict[type[Model], set[str]]:
    columns = {model: set(names) for model, names in NO_USER_TEXT.items()}
    for store in STORES:
        for model, names in store.texts.items():
            columns.setdefault(model, set()).update(names)
    return columns
