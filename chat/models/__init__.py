from chat.models.attachments import Attachment, FileRemoval
from chat.models.calls import ANSWERED, SUMMARY_KINDS, Call, CallKind, ModelPrice
from chat.models.imports import Import, ImportedStretch, ImportState
from chat.models.messages import (
    FINAL,
    Message,
    MessageRevision,
    Reaction,
    Role,
    Status,
    display_name,
)
from chat.models.providers import ModelProvider, ProviderKind
from chat.models.saved_prompts import SavedPrompt
from chat.models.sessions import (
    ReasoningEffort,
    Seen,
    Session,
    SessionKind,
    SessionStatus,
    Visibility,
    open_label,
)
