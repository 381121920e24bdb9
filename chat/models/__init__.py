from chat.models.attachments import Attachment
from chat.models.imports import Import, ImportedStretch, ImportState
from chat.models.messages import (
    FINAL,
    Message,
    MessageRevision,
    Reaction,
    Role,
    Status,
    name_of,
)
from chat.models.removals import FileRemoval
from chat.models.seen import Seen
from chat.models.sessions import Session, SessionKind, SessionStatus, Visibility, open_label

__all__ = [
    "FINAL",
    "Attachment",
    "FileRemoval",
    "Import",
    "ImportState",
    "ImportedStretch",
    "Message",
    "MessageRevision",
    "Reaction",
    "Role",
    "Seen",
    "Session",
    "SessionKind",
    "SessionStatus",
    "Status",
    "Visibility",
    "name_of",
    "open_label",
]
