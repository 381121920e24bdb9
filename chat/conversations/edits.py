"""Changes to existing messages: edit, delete, hide, react, regenerate, choose a branch, fork.

Like posting, each operation first locks the session's row. All except `fork` increase its version.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.attachments import copy_attachments
from chat.conversations.branches import latest_leaf, path_difference, path_to
from chat.conversations.messages import NewBranch, begin_reply, draft, post_messages
from chat.conversations.titles import reset_title
from chat.models import Message, MessageRevision, Reaction, Role, Session
from chat.models.messages import MAX_REACTIONS, is_emoji
from chat.signals import message_changed, message_edited, messages_deleted
from projects.core import token_counting
from projects.core.errors import ConflictError, InvalidInputError, StaleVersionError

MAX_EMOJI_CHARS = 32
COPIED_FIELDS = """
    role author author_name text tokens tool_calls tool_call_id lookups model status error
    created_at
""".split()


class StaleMessageError(StaleVersionError):
    """The message has changed since its editor read it. `current` is its current state."""

    def __init__(self, current: Message) -> None:
        super().__init__(_("This message has changed since you opened it. Reload the page."))
        self.current = current


@contextmanager
def locked_session(project_id: UUID, session_id: UUID) -> Iterator[Session]:
    """Lock the session. Increase its version at the end of the block."""
    with transaction.atomic():
        rows = Session.objects.select_for_update(of=("self",)).select_related("project")
        session = rows.get(project=project_id, pk=session_id)
        yield session
        session.touch(timezone.now())
        columns = ["version", "last_activity_at", "head", "cleared_through", "title"]
        session.save(update_fields=columns)


def current_message(message: Message, version: int | None) -> Message:
    """Return the current state of a finished message.

    Raises StaleMessageError if its version is not `version`, and ConflictError for an unfinished
    reply.
    """
    rows = Message.objects.filter(project=message.project_id).select_related("author", "session")
    current = rows.get(pk=message.pk)
    if version is not None and current.version != version:
        raise StaleMessageError(current)
    if not current.is_final:
        raise ConflictError(_("This reply is not finished yet."))
    return current


def edit(message: Message, text: str, by, version: int | None = None) -> Message:
    """Replace the text of `message`. The previous text is kept as a revision.

    Raises StaleMessageError if `version` is not None and differs from the current version, and
    ConflictError for a message that is deleted or unfinished.
    """
    with locked_session(message.project_id, message.session_id) as session:
        current = current_message(message, version)
        if current.deleted_at is not None:
            raise ConflictError(_("This message was deleted."))
        now = timezone.now()
        MessageRevision.objects.create(
            project_id=current.project_id,
            message=current,
            version=current.version,
            text=current.text,
            edited_by=by,
            edited_at=now,
        )
        current.text, current.tokens = text, token_counting.count(text)
        current.edited_at, current.version = now, current.version + 1
        current.save(update_fields=["text", "tokens", "edited_at", "version"])
        message_changed.send(sender=Message, session=session, messages=[current])
        message_edited.send(sender=Message, session=session, message=current)
    return current


def delete(message: Message, version: int | None = None) -> Message:
    """Remove `message` from prompts, memory and search. An empty placeholder stays in the chat.

    Raises StaleMessageError like `edit`, and ConflictError for an unfinished reply. A second
    deletion changes nothing, but after `hide` the message can no longer be shown.
    """
    with locked_session(message.project_id, message.session_id) as session:
        current = current_message(message, version)
        if current.deleted_at is None or current.hidden_at is not None:
            _save_deletion(session, current, current.deleted_at or timezone.now())
    return current


def hide(message: Message) -> Message:
    """Delete `message` in a way that `show` can undo. Raises ConflictError if it is deleted."""
    with locked_session(message.project_id, message.session_id) as session:
        current = current_message(message, None)
        if current.deleted_at is not None:
            raise ConflictError(_("This message was deleted."))
        now = timezone.now()
        _save_deletion(session, current, now, hidden_at=now)
    return current


def show(message: Message) -> Message:
    """Undo `hide`. Raises ConflictError if the message is not hidden."""
    with locked_session(message.project_id, message.session_id) as session:
        current = current_message(message, None)
        if current.hidden_at is None:
            raise ConflictError(_("This message is not hidden."))
        _save_deletion(session, current, None)
    return current


def _save_deletion(
    session: Session,
    message: Message,
    deleted_at: datetime | None,
    hidden_at: datetime | None = None,
) -> None:
    was_deleted = message.deleted_at is not None
    message.deleted_at, message.hidden_at = deleted_at, hidden_at
    message.version += 1
    message.save(update_fields=["deleted_at", "hidden_at", "version"])
    reset_title(session, [message])
    message_changed.send(sender=Message, session=session, messages=[message])
    if deleted_at is None:
        message_edited.send(sender=Message, session=session, message=message)
    elif not was_deleted:
        messages_deleted.send(sender=Message, session=session, messages=[message])


def react(message: Message, user, emoji: str, wanted: bool) -> None:
    """Add or, if `wanted` is false, remove a reaction of `user`.

    Raises InvalidInputError if the added `emoji` is not a single emoji, or if the user has already
    added MAX_REACTIONS others. Stored texts that are no emoji can still be removed.
    """
    emoji = emoji.strip()
    if not emoji or (wanted and not is_emoji(emoji)):
        raise InvalidInputError(_("A reaction must be a single emoji."), field="emoji")
    with locked_session(message.project_id, message.session_id):
        fields = {"project_id": message.project_id, "message_id": message.pk, "user": user}
        if wanted:
            others = Reaction.objects.filter(**fields).exclude(emoji=emoji)
            if others.count() >= MAX_REACTIONS:
                reason = _("You can add at most %(most)d reactions to a message.")
                raise InvalidInputError(reason % {"most": MAX_REACTIONS}, field="emoji")
            Reaction.objects.get_or_create(emoji=emoji, **fields)
        else:
            Reaction.objects.filter(emoji=emoji, **fields).delete()


def clear(session: Session) -> int:
    """Delete all messages of the session and return their number. Lists no longer contain them.

    Raises ConflictError while a reply is unfinished.
    """
    with locked_session(session.project_id, session.pk) as locked:
        messages = list(locked.messages.filter(deleted_at=None))
        if any(not message.is_final for message in messages):
            raise ConflictError(_("The assistant is still replying. Stop the reply first."))
        now = timezone.now()
        # Hidden messages are deleted already. `show` must no longer restore them.
        hidden = locked.messages.exclude(hidden_at=None)
        hidden.update(hidden_at=None, version=F("version") + 1)
        for message in messages:
            message.deleted_at, message.version = now, message.version + 1
        Message.objects.bulk_update(messages, ["deleted_at", "version"], batch_size=500)
        locked.head, locked.cleared_through = None, locked.last_seq
        reset_title(locked, messages)
        message_changed.send(sender=Message, session=locked, messages=messages)
        messages_deleted.send(sender=Message, session=locked, messages=messages)
    return len(messages)


def rerun(message: Message, text: str, author) -> tuple[Message, Message]:
    """Post `text` as an alternative to the user message `message`, and begin a reply to it.

    The messages after the original are kept as a branch. Raises ConflictError if `message` is not
    from a user, or if it was deleted: its images would be shown again.
    """
    if message.role != Role.USER:
        raise ConflictError(_("Only messages from people can be sent again."))
    with locked_session(message.project_id, message.session_id) as session:
        if current_message(message, None).deleted_at is not None:
            raise ConflictError(_("This message was deleted."))
        place = NewBranch(message.parent_id)
        [sibling] = post_messages(session, [draft(text, author=author)], at=place)
        copy_attachments([(message.pk, sibling)])
        reply = begin_reply(sibling)
    return sibling, reply


def regenerate(reply: Message, model: str = "") -> tuple[Message, Message]:
    """Begin another reply to the message that `reply` answers; return the message and the reply.

    `model` writes the new reply, by default the session's model. Raises ConflictError if `reply` is
    not a reply, or if prompts do not contain the message that it answers because it was deleted.
    """
    if reply.role != Role.ASSISTANT or reply.parent_id is None:
        raise ConflictError(_("Only replies can be regenerated."))
    with locked_session(reply.project_id, reply.session_id) as session:
        current_message(reply, None)
        _check_not_cleared(session, reply)
        message = Message.objects.get(pk=reply.parent_id)
        if message.role not in (Role.USER, Role.TOOL):
            raise ConflictError(_("Only a reply to a message can be regenerated."))
        is_in_prompts = session.project.keep_deleted and message.hidden_at is None
        if message.deleted_at is not None and not is_in_prompts:
            raise ConflictError(
                _("The message before this reply was deleted, so the reply cannot be regenerated.")
            )
        message.session = session
        sibling = begin_reply(message, model)
    return message, sibling


def choose(message: Message) -> Session:
    """Make the branch with `message` active, down to its latest message.

    Raises ConflictError for a message from before the chat was cleared.
    """
    with locked_session(message.project_id, message.session_id) as session:
        _check_not_cleared(session, message)
        nodes = list(session.messages.only("session", "parent", "seq"))
        before, session.head_id = session.head_id, latest_leaf(nodes, message.pk)
        changed = path_difference(nodes, before, session.head_id)
        rows = list(session.messages.filter(pk__in=changed))
        message_changed.send(sender=Message, session=session, messages=rows)
    return session


def _check_not_cleared(session: Session, message: Message) -> None:
    if message.seq <= session.cleared_through:
        raise ConflictError(_("This message was deleted."))


@transaction.atomic
def fork(message: Message, user) -> Session:
    """Return a new session of `user` that begins with a copy of the path down to `message`.

    Deleted and unfinished messages are left out. The new session has the visibility of the original
    session. Copies refer to their originals; memory contains only the originals.
    """
    # Locked, so that messages are not copied while they are being forgotten.
    origin = Session.objects.select_for_update().get(pk=message.session_id)
    path = path_to(origin.messages.select_related("author"), message.pk)
    originals = [message for message in path if message.is_final and message.deleted_at is None]
    session = Session.objects.create(
        project=origin.project,
        creator=user,
        title=origin.title if _title_fits_copies(originals, origin) else "",
        title_by_hand=origin.title_by_hand,
        visibility=origin.visibility,
        remembered=origin.remembered,
        history_limit=origin.history_limit,
        chat_model=origin.chat_model,
        temperature=origin.temperature,
        reasoning_effort=origin.reasoning_effort,
        tags=origin.tags,
    )
    drafts = [
        Message(
            copied_from_id=message.copied_from_id or message.pk,
            **{name: getattr(message, name) for name in COPIED_FIELDS},
        )
        for message in originals
    ]
    copies = post_messages(session, drafts)
    copy_attachments(zip((message.pk for message in originals), copies, strict=True))
    return session


def _title_fits_copies(copied: list[Message], origin: Session) -> bool:
    """Return whether the title may be copied: it was set by hand, or generated from copied messages
    only.

    Otherwise the title could reveal text that is not in the fork, even after this text is
    forgotten.
    """
    messages = origin.messages.exclude(text="").order_by("seq")
    first = (messages.filter(role=role).first() for role in (Role.USER, Role.ASSISTANT))
    return origin.title_by_hand or {message for message in first if message} <= {*copied}
