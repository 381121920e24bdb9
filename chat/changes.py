"""What becomes of a message after it was said: edited, deleted, reacted to, branched off.

Everything here locks the session's row first, as posting does, and raises its version.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import tokens
from chat.attachments import carry
from chat.models import Message, MessageRevision, Reaction, Role, Session
from chat.paths import latest_leaf, moved, path_to
from chat.replies import Below, begin_reply, draft, post_messages
from chat.signals import message_changed

LONGEST_EMOJI = 32


class Stale(Exception):
    """The message was changed since its editor read it; `message` is what it is now."""

    def __init__(self, message: Message) -> None:
        super().__init__(_("The message was changed in the meantime."))
        self.message = message


class Refused(Exception):
    """A change that makes no sense here; the text says why, for people."""


@contextmanager
def _changing(project_id: UUID, session_id: UUID) -> Iterator[Session]:
    """The session, locked; its version has risen when the block ends."""
    with transaction.atomic():
        rows = Session.objects.select_for_update(of=("self",)).select_related("project")
        session = rows.get(project=project_id, pk=session_id)
        yield session
        session.touch(timezone.now())
        session.save(update_fields=["version", "last_activity_at", "head"])


def _tell(session: Session, messages: Iterable[Message]) -> None:
    message_changed.send(sender=Message, session=session, messages=list(messages))


def _fresh(message: Message, version: int | None) -> Message:
    """The message as it is now. Raises Stale when it is not at `version`, if one is given."""
    rows = Message.objects.filter(project=message.project_id).select_related("author", "session")
    now = rows.get(pk=message.pk)
    if version is not None and now.version != version:
        raise Stale(now)
    if not now.is_final:
        raise Refused(_("This reply is still being said."))
    return now


def edit(message: Message, text: str, by, version: int | None = None) -> Message:
    """Gives `message` another text and keeps the one before as a revision.

    With `version`, only if the message is still at it. Raises Stale, or Refused for a message that
    is deleted or still being said.
    """
    with _changing(message.project_id, message.session_id) as session:
        now = _fresh(message, version)
        if now.deleted_at is not None:
            raise Refused(_("This message was deleted."))
        moment = timezone.now()
        MessageRevision.objects.create(
            project_id=now.project_id,
            message=now,
            version=now.version,
            text=now.text,
            edited_by=by,
            edited_at=moment,
        )
        now.text, now.tokens = text, tokens.count(text)
        now.edited_at, now.version = moment, now.version + 1
        now.save(update_fields=["text", "tokens", "edited_at", "version"])
        _tell(session, [now])
    return now


def delete(message: Message, version: int | None = None) -> Message:
    """Takes `message` out of prompts, memory and search; a tombstone stays in its place.

    Raises Stale and Refused as `edit` does. To delete twice changes nothing.
    """
    with _changing(message.project_id, message.session_id) as session:
        now = _fresh(message, version)
        if now.deleted_at is None:
            now.deleted_at, now.version = timezone.now(), now.version + 1
            now.save(update_fields=["deleted_at", "version"])
            _tell(session, [now])
    return now


def react(message: Message, user, emoji: str, wanted: bool) -> None:
    """Gives the emoji of `user` to `message`, or takes it back. Raises Refused for no emoji."""
    emoji = emoji.strip()
    if not is_emoji(emoji):
        raise Refused(_("A reaction is one emoji."))
    with _changing(message.project_id, message.session_id):
        given = {"project_id": message.project_id, "message_id": message.pk, "user": user}
        if wanted:
            Reaction.objects.get_or_create(emoji=emoji, **given)
        else:
            Reaction.objects.filter(emoji=emoji, **given).delete()


def is_emoji(text: str) -> bool:
    return 0 < len(text) <= LONGEST_EMOJI and not text.isascii() and not text.isalnum()


def clear(session: Session) -> int:
    """Empties the session; its version goes on rising. Returns how many messages were deleted.

    Raises Refused while a reply is being said.
    """
    with _changing(session.project_id, session.pk) as locked:
        standing = list(locked.messages.filter(deleted_at=None))
        if any(not message.is_final for message in standing):
            raise Refused(_("A reply is still being said. Stop it first."))
        moment = timezone.now()
        for message in standing:
            message.deleted_at, message.version = moment, message.version + 1
        Message.objects.bulk_update(standing, ["deleted_at", "version"], batch_size=500)
        locked.head = None
        _tell(locked, standing)
    return len(standing)


def rerun(message: Message, text: str, author) -> tuple[Message, Message]:
    """Says `text` in place of `message`, as a sibling, and begins the reply to it.

    What followed the original stays as a branch beside the path. Raises Refused for what no
    person said.
    """
    if message.role != Role.USER:
        raise Refused(_("Only what a person said can be asked again."))
    with _changing(message.project_id, message.session_id) as session:
        [asked] = post_messages(session, [draft(text, author=author)], at=Below(message.parent_id))
        carry([(message.pk, asked)])
        reply = begin_reply(asked)
    return asked, reply


def regenerate(reply: Message) -> tuple[Message, Message]:
    """What `reply` answered, and another reply to it, begun; the one before stays as a sibling.

    Raises Refused for what is no reply, and where the question was deleted for good.
    """
    if reply.role != Role.ASSISTANT or reply.parent_id is None:
        raise Refused(_("Only a reply can be regenerated."))
    with _changing(reply.project_id, reply.session_id) as session:
        _fresh(reply, None)
        asked = Message.objects.get(pk=reply.parent_id)
        if asked.role not in (Role.USER, Role.TOOL):
            raise Refused(_("Only the reply to a message can be regenerated."))
        if asked.deleted_at is not None and not session.project.keep_deleted:
            raise Refused(_("The message that it answers was deleted."))
        asked.session = session
        again = begin_reply(asked)
    return asked, again


def choose(message: Message) -> Session:
    """Makes the path go through `message`, and on to the end of its latest branch."""
    with _changing(message.project_id, message.session_id) as session:
        nodes = list(session.messages.only("session", "parent", "seq"))
        before, session.head_id = session.head_id, latest_leaf(nodes, message.pk)
        _tell(session, session.messages.filter(pk__in=moved(nodes, before, session.head_id)))
    return session


@transaction.atomic
def fork(message: Message, user) -> Session:
    """A new session of `user` that begins with the path down to `message`, and is as open as it.

    The copies name their originals: they are remembered there, and not a second time.
    """
    # Locked, so that nothing is copied while it is forgotten.
    origin = Session.objects.select_for_update().get(pk=message.session_id)
    path = path_to(origin.messages.select_related("author"), message.pk)
    standing = [one for one in path if one.is_final and one.deleted_at is None]
    session = Session.objects.create(
        project=origin.project,
        creator=user,
        title=origin.title if _is_titled_after(standing, origin) else "",
        title_by_hand=origin.title_by_hand,
        visibility=origin.visibility,
        remembered=origin.remembered,
        history_limit=origin.history_limit,
    )
    copies = post_messages(session, [_copy(one) for one in standing])
    carry(zip((one.pk for one in standing), copies, strict=True))
    return session


def _is_titled_after(copied: list[Message], origin: Session) -> bool:
    """Whether the title of `origin` was chosen, or was made of nothing but what is copied.

    Else it would tell in the fork of what is not there, and stay when that is forgotten.
    """
    said = origin.messages.exclude(text="").order_by("seq")
    first = (said.filter(role=role).first() for role in (Role.USER, Role.ASSISTANT))
    return origin.title_by_hand or {one for one in first if one} <= {*copied}


def _copy(message: Message) -> Message:
    return Message(
        role=message.role,
        author=message.author,
        author_name=message.author_name,
        text=message.text,
        tokens=message.tokens,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        model=message.model,
        status=message.status,
        error=message.error,
        created_at=message.created_at,
        copied_from_id=message.copied_from_id or message.pk,
    )
