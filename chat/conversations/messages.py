"""Write path for messages. Pages, REST, OpenAI, MCP and importers create messages only with this
module. `memory.portability.importing` restores them from exports of projects by itself.
"""

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from chat.attachments import claim_uploads
from chat.conversations.branches import path_difference
from chat.conversations.titles import title_from
from chat.models import Message, Role, Session, Status
from chat.signals import message_added, message_changed
from projects.core import token_counting
from projects.core.database import PreparedObjects, fetch

MAX_MESSAGE_CHARS = 500_000


@dataclass(frozen=True)
class NewBranch:
    """Begin a new branch below the message `parent`. If `parent` is None, it begins at the start of
    the chat.
    """

    parent: UUID | None


@dataclass(frozen=True)
class PresetPlaces:
    """Keep `parent` and `remembered` of each draft. The active path then ends at `head`."""

    head: UUID | None


def draft(text: str, **fields) -> Message:
    """Return an unsaved message for `post_messages`. The default role is user."""
    return Message(
        **{"role": Role.USER, "text": text, "tokens": token_counting.count(text)} | fields
    )


def post_message(session: Session, text: str, **fields) -> Message:
    """Append one finished message to the session's active path, and return it.

    `fields` are fields of Message: role (default: user), author, author_name, created_at.
    """
    [message] = post_messages(session, [draft(text, **fields)])
    return message


def ask(
    session: Session, text: str, author, attachments: Collection[UUID] = ()
) -> tuple[Message, Message]:
    """Post a message of `author` together with the pending reply to it, and return both.

    Both are written in one transaction, so that each reply follows its message even if several
    users write at once. `attachments` are ids of images that the author uploaded to the session. If
    one of them cannot be claimed, raises ImageRejectedError and posts nothing.
    """
    message = draft(text, author=author)
    # Without images, the transaction of `post_messages` is enough.
    with transaction.atomic() if attachments else nullcontext():
        _, reply = post_messages(session, [message, pending_reply(session, message)])
        claim_uploads(message, attachments, author)
    return message, reply


def begin_reply(message: Message, model: str = "") -> Message:
    """Post a pending reply to `message`. `model` writes it, by default the session's model.

    Another call adds an alternative reply, which becomes active.
    """
    [reply] = post_messages(message.session, [pending_reply(message.session, message, model)])
    return reply


def pending_reply(session: Session, message: Message, model: str = "") -> Message:
    model = model or session.chat_model_name
    return Message(
        role=Role.ASSISTANT,
        status=Status.PENDING,
        parent=message,
        # By the database clock, like all later heartbeats.
        heartbeat_at=Now(),
        model=model,
        # Replies of the bundled demo model are not remembered, because they are often wrong.
        remembered=model != "demo",
    )


def lock_session(session: Session) -> Session:
    """Lock the session and return its current row, with `session.project` as its project."""
    rows = _locked_sessions(session.project_id, session.pk)
    if not rows:
        raise Session.DoesNotExist
    [locked] = rows
    locked.project = session.project
    return locked


@PreparedObjects.of(UUID, UUID)
def _locked_sessions(project: UUID, pk: UUID) -> QuerySet[Session]:
    return Session.objects.filter(project=project, pk=pk).select_for_update()


# The maximum number of messages in a prepared INSERT: a question with its reply.
MAX_PREPARED = 2


def _insert(messages: Sequence[Message]) -> None:
    """Insert messages with a prepared statement. `bulk_create` would compile its SQL each time."""
    fields = Message._meta.concrete_fields
    rows: list[str] = []
    values: list[object] = []
    for message in messages:
        row = []
        for field in fields:
            value = getattr(message, field.attname)
            if isinstance(value, Now):
                row.append("statement_timestamp()")
            else:
                row.append("%s")
                values.append(field.get_db_prep_save(value, connection))
        rows.append(f"({', '.join(row)})")
        message._state.adding = False
        message._state.db = DEFAULT_DB_ALIAS
    columns = ", ".join(str(field.column) for field in fields)
    statement = f"INSERT INTO chat_message ({columns}) VALUES {', '.join(rows)}"
    fetch(statement, values, prepared=True)


# The columns of a session that new messages change.
_PLACE_COLUMNS = ("last_seq", "head_id", "title", "version", "last_activity_at")
_SAVE_PLACE = f"""
    UPDATE chat_session SET {", ".join(f"{name} = %s" for name in _PLACE_COLUMNS)}
    WHERE project_id = %s AND id = %s
"""


@transaction.atomic
def post_messages(
    session: Session, drafts: Sequence[Message], *, at: NewBranch | PresetPlaces | None = None
) -> list[Message]:
    """Append `drafts` in order. Return them with their place in the conversation.

    The session's row is locked while places are assigned, so that concurrent writers get the
    numbers 1, 2, 3 … without gaps or duplicates. With `PresetPlaces`, drafts keep their parents.
    Otherwise, a draft without a parent follows the preceding draft. If it is the first draft, it
    begins the `NewBranch`, or follows the end of the active path if `at` is None. A draft with
    `remembered=False` keeps this value. The active path then ends at the last draft, or at the head
    of `PresetPlaces`. Sends `message_changed` for earlier messages that left or joined the active
    path.
    """
    locked = lock_session(session)
    preset = isinstance(at, PresetPlaces)
    remembered = locked.remembered and locked.project.memory_enabled
    old_head, was_empty = locked.head_id, not locked.last_seq
    parent = at.parent if isinstance(at, NewBranch) else locked.head_id
    for message in drafts:
        locked.last_seq += 1
        message.seq = locked.last_seq
        message.project_id = locked.project_id
        message.session = session
        if not preset:
            message.remembered = remembered and message.remembered
            message.parent_id = message.parent_id or parent
        parent = message.pk
        locked.touch(message.created_at)
        if not locked.title and message.role == Role.USER:
            locked.title = title_from(message.text)
    written = list(drafts)
    if not 0 < len(written) <= MAX_PREPARED:
        Message.objects.bulk_create(written, batch_size=1_000)
    else:
        _insert(written)
    locked.head_id = at.head if isinstance(at, PresetPlaces) else parent
    place = [getattr(locked, name) for name in _PLACE_COLUMNS]
    fetch(_SAVE_PLACE, [*place, locked.project_id, locked.pk], prepared=True)
    for name, value in zip(_PLACE_COLUMNS, place, strict=True):
        setattr(session, name, value)
    message_added.send(sender=Message, session=session, messages=written)
    if drafts and not was_empty and (preset or drafts[0].parent_id != old_head):
        _send_path_change(session, old_head, written)
    return written


def _send_path_change(session: Session, old_head: UUID | None, written: Sequence[Message]) -> None:
    """Send `message_changed` for existing messages that left or joined the active path."""
    messages = session.messages.filter(project=session.project_id)
    nodes = list(messages.only("session", "parent", "seq"))
    changed = path_difference(nodes, old_head, session.head_id) - {
        message.pk for message in written
    }
    if changed:
        rows = list(messages.filter(pk__in=changed))
        message_changed.send(sender=Message, session=session, messages=rows)
