"""Admin pages of memory."""

from memory.admin import (
    background_work,
    blocks,
    conversations,
    entries,
    facts,
    files,
    imports,
    records,
    webhooks,
)
