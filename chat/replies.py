"""The one write path of a conversation: whoever says something says it here."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat import prompt, providers, tokens, tooling
from chat.attachments import claim
from chat.compiled import CompiledObjects
from chat.database import in_thread
from chat.growing import growing
from chat.models import Message, Role, Session, Status
from chat.options import Options
from chat.paths import moved
from chat.providers import Delta, Failed, Finished, ProviderError
from chat.signals import message_added, message_changed, reply_kept, turn_finished
from chat.storable import storable
from chat.titles import title_from

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 500_000  # characters
# Seconds between the tries to keep a reply that is all said, while the database restarts.
RETRIES = (0.5, 1, 2, 4, 8, 15)
SERVER_STOPPED = _("The server stopped while this was being said.")
FAILED_HERE = _("Strata itself failed while answering.")
CUT_OFF = _("The model stopped here because its answer reached the longest it may give.")
UNSEEN = _("The model could not see the image; it was told its description.")
ALL_UNSEEN = "The model could not see the {} images; it was told their descriptions."


def post_message(session: Session, text: str, **fields) -> Message:
    """Appends one finished message to `session`, at the end of its path, and returns it.

    `fields` are those of Message: role (user unless given), author, author_name, created_at.
    """
    [message] = post_messages(session, [draft(text, **fields)])
    return message


def draft(text: str, **fields) -> Message:
    """A message that has no place yet, for `post_messages`."""
    return Message(**{"role": Role.USER, "text": text, "tokens": tokens.count(text)} | fields)


def ask(
    session: Session, text: str, author, attachments: Collection[UUID] = ()
) -> tuple[Message, Message]:
    """The message of `author` and the pending reply to it, next to each other in the path.

    They are written together, so that in a session with several writers every answer follows
    its question. `attachments` are ids of images that the author uploaded to the session; Refused
    is raised, and nothing posted, for what cannot be claimed.
    """
    message = draft(text, author=author)
    with transaction.atomic():
        _, reply = post_messages(session, [message, _pending(session, message)])
        claim(message, attachments, author)
    return message, reply


def begin_reply(asked: Message) -> Message:
    """Records that a reply to `asked` is coming, before a word of it is there.

    Called again for the same message, it adds a sibling: the new one counts from now on.
    """
    [reply] = post_messages(asked.session, [_pending(asked.session, asked)])
    return reply


def _pending(session: Session, asked: Message) -> Message:
    return Message(
        role=Role.ASSISTANT,
        status=Status.PENDING,
        parent=asked,
        # The database's clock, as each flush takes it.
        heartbeat_at=Now(),
        model=session.project.chat_model_name,
    )


@dataclass(frozen=True)
class Below:
    """The place of a new branch: below the message `parent`, or at the very beginning."""

    parent: UUID | None


@dataclass(frozen=True)
class Placed:
    """The drafts bring their places along: each its parent, or none for the beginning of a path,
    and whether it is remembered. The path that counts then ends at the message `head`.
    """

    head: UUID | None


@transaction.atomic
def post_messages(
    session: Session,
    drafts: Sequence[Message],
    *,
    at: Below | Placed | None = None,
) -> list[Message]:
    """Appends `drafts` in their order and returns them with their places.

    The session's row is locked while places are handed out, so that any number of writers get
    1, 2, 3 … without gap or double. The first draft follows the end of the session's path, or
    stands `at` another place; each later one without a parent follows the one before it. What is
    not remembered in a session that is stays so. The path then ends at the last draft. What it
    leaves, or goes through again, is told to have changed.
    """
    locked = _locked.first(session.project_id, session.pk)
    if locked is None:
        raise Session.DoesNotExist
    placed = isinstance(at, Placed)
    remembered = locked.remembered and locked.project.memory_enabled
    left, was_empty = locked.head_id, not locked.last_seq
    before = at.parent if isinstance(at, Below) else locked.head_id
    for message in drafts:
        locked.last_seq += 1
        message.seq = locked.last_seq
        message.project_id = locked.project_id
        message.session = session
        if not placed:
            message.remembered = remembered and message.remembered
            message.parent_id = message.parent_id or before
        before = message.pk
        locked.touch(message.created_at)
        if not locked.title and message.role == Role.USER:
            locked.title = title_from(message.text)
    written = Message.objects.bulk_create(drafts, batch_size=1_000)
    locked.head_id = at.head if isinstance(at, Placed) else before
    changed = ("last_seq", "head_id", "title", "version", "last_activity_at")
    locked.save(update_fields=changed)
    for name in changed:
        setattr(session, name, getattr(locked, name))
    message_added.send(sender=Message, session=session, messages=written)
    if drafts and not was_empty and (placed or drafts[0].parent_id != left):
        _tell_of_the_path(session, left, written)
    return written


def _to_lock(project: UUID, session: UUID) -> QuerySet[Session]:
    rows = Session.objects.select_for_update(of=("self",)).select_related("project")
    return rows.filter(project=project, pk=session)


_locked = CompiledObjects[Session](_to_lock, UUID, UUID)


def _tell_of_the_path(session: Session, left: UUID | None, written: Sequence[Message]) -> None:
    """Tells which messages that were there before the path leaves now, or goes through again."""
    here = session.messages.filter(project=session.project_id)
    nodes = list(here.only("session", "parent", "seq"))
    others = moved(nodes, left, session.head_id) - {message.pk for message in written}
    if others:
        rows = here.filter(pk__in=others)
        message_changed.send(sender=Message, session=session, messages=list(rows))


async def stream_reply(
    reply: Message,
    stopped: Callable[[], bool] = lambda: False,
    options: Options = Options(),
) -> AsyncIterator[Delta | Finished | Failed]:
    """Says `reply` piece by piece and keeps it: flushed once a second, finalised in any case.

    Its last event tells how it ended, unless it was ended.

    No transaction and no connection is held while the model speaks. Closed or cancelled early, the
    text so far stays: marked stopped if `stopped()` says that a reader wanted it so, else (its
    process goes down) interrupted.
    """
    text: list[str] = []
    status = Status.INTERRUPTED
    changes: dict[str, object] = {"error": SERVER_STOPPED}
    try:
        with growing(reply, text):
            built = await in_thread(_prompt_for, reply, options.system)
            changes["receipt"] = built.receipt()
            provider = await asyncio.to_thread(providers.get, built.model, "reply")
            began = time.monotonic()
            async for event in provider.stream(built.said, options):
                if isinstance(event, Delta):
                    if not text:
                        changes["first_token_ms"] = int((time.monotonic() - began) * 1000)
                    text.append(storable(event.text))
                    yield Delta(text[-1])
                else:
                    changes |= _usage(event)
                    status = Status.COMPLETE
                    yield event
    except ProviderError as error:
        log.warning("reply_failed message=%s reason=%s cause=%r", reply.pk, error, error.__cause__)
        status, changes["error"] = Status.FAILED, error.reason
        yield Failed(error)
    except asyncio.CancelledError:
        if stopped():
            status, changes["error"] = Status.STOPPED, ""
        raise
    except Exception:
        # Whatever went wrong, the reader is told and the message does not stay open for ever.
        log.exception("reply_failed message=%s", reply.pk)
        status, changes["error"] = Status.FAILED, FAILED_HERE
        yield Failed(ProviderError(FAILED_HERE, status=500, code="internal_error"))
    finally:
        await asyncio.shield(_keep(reply, "".join(text), status, changes))


async def _keep(reply: Message, text: str, status: str, changes: Mapping[str, object]) -> None:
    """Finalises, and does not give up while the database restarts: no word of a reply is lost."""
    for wait in RETRIES:
        try:
            await in_thread(finalise, reply, text, status, changes)
            return
        except OperationalError:
            log.warning("finalise_failed message=%s next_try_in=%s", reply.pk, wait)
            await asyncio.sleep(wait)
    await in_thread(finalise, reply, text, status, changes)


def _prompt_for(reply: Message, system: str) -> prompt.Prompt:
    """The prompt of a pending reply, built when its turn comes, from what is committed then."""
    fresh = _as_committed.first(reply.pk)
    if fresh is None:
        raise Message.DoesNotExist
    return prompt.build(prompt.Turn(fresh.session, fresh.parent, system=system))


def _with_its_question(reply: UUID) -> QuerySet[Message]:
    return Message.objects.select_related("parent__author", "session__project").filter(pk=reply)


_as_committed = CompiledObjects[Message](_with_its_question, UUID)


def _usage(event: Finished) -> dict[str, object]:
    return {
        "model": event.model,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost": event.cost,
        "tool_calls": tooling.written(event.calls),
        "error": " ".join(_notes(event)),
    }


def _notes(event: Finished) -> Iterator[str]:
    """What the reader of a complete reply has to know of it."""
    if event.unseen:
        yield UNSEEN if event.unseen == 1 else ALL_UNSEEN.format(event.unseen)
    if event.cut_off:
        yield CUT_OFF


@transaction.atomic
def finalise(reply: Message, text: str, status: str, changes: Mapping[str, object]) -> bool:
    """Gives `reply` its last text and status, once; False when it already had them."""
    session = _locked.first(reply.project_id, reply.session_id)
    if session is None:
        raise Session.DoesNotExist
    done = Message.objects.unfinished().filter(pk=reply.pk)
    if not done.update(text=text, tokens=tokens.count(text), status=status, **changes):
        return False
    session.touch(timezone.now())
    session.save(update_fields=["version", "last_activity_at"])
    reply.refresh_from_db()
    reply.session = session
    message_changed.send(sender=Message, session=session, messages=[reply])
    reply_kept.send(sender=Message, session=session, message=reply)
    # The reply is kept, whatever becomes of those who are told.
    transaction.on_commit(lambda: turn_finished.send(sender=Message, message=reply), robust=True)
    return True
