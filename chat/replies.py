"""The one write path of a conversation: whoever says something says it here."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from chat import prompt, providers, tokens
from chat.database import in_thread
from chat.models import Message, Role, Session, Status
from chat.providers import Delta, Finished, ProviderError
from chat.signals import message_added, message_changed, turn_finished
from chat.titles import title_from

log = logging.getLogger(__name__)

# Seconds between two writes of a growing reply, and between two signs of life of a silent one.
FLUSH_SECONDS = 1.0


def post_message(session: Session, text: str, **fields) -> Message:
    """Appends one finished message to `session`, at the end of its path, and returns it.

    `fields` are those of Message: role (user unless given), author, author_name, created_at.
    """
    [message] = post_messages(session, [draft(text, **fields)])
    return message


def draft(text: str, **fields) -> Message:
    """A message that has no place yet, for `post_messages`."""
    return Message(**{"role": Role.USER, "text": text, "tokens": tokens.count(text)} | fields)


def ask(session: Session, text: str, author) -> tuple[Message, Message]:
    """The message of `author` and the pending reply to it, next to each other in the path.

    They are written together, so that in a session with several writers every answer follows
    its question.
    """
    with transaction.atomic():
        message = post_message(session, text, author=author)
        return message, begin_reply(message)


def begin_reply(asked: Message) -> Message:
    """Records that a reply to `asked` is coming, before a word of it is there.

    Called again for the same message, it adds a sibling: the new one counts from now on.
    """
    reply = Message(
        role=Role.ASSISTANT,
        status=Status.PENDING,
        parent=asked,
        heartbeat_at=timezone.now(),
        model=asked.session.project.chat_model_name,
    )
    [reply] = post_messages(asked.session, [reply])
    return reply


@transaction.atomic
def post_messages(session: Session, drafts: Sequence[Message]) -> list[Message]:
    """Appends `drafts` in their order and returns them with their places.

    The session's row is locked while places are handed out, so that any number of writers get
    1, 2, 3 … without gap or double. A draft without a parent follows the one before it.
    """
    locked = Session.objects.select_for_update().get(pk=session.pk)
    head = locked.head_id
    for message in drafts:
        locked.last_seq += 1
        message.seq = locked.last_seq
        message.project_id = locked.project_id
        message.session = session
        message.remembered = locked.remembered
        message.parent_id = message.parent_id or head
        head = message.pk
        locked.touch(message.created_at)
        if not locked.title and message.role == Role.USER:
            locked.title = title_from(message.text)
    written = Message.objects.bulk_create(drafts, batch_size=1_000)
    locked.head_id = head
    changed = ("last_seq", "head_id", "title", "version", "last_activity_at")
    locked.save(update_fields=changed)
    for name in changed:
        setattr(session, name, getattr(locked, name))
    message_added.send(sender=Message, session=session, messages=written)
    return written


@dataclass(frozen=True)
class Failed:
    """The end of a reply that did not come to be; `reason` is for people."""

    reason: str
    retry_after: float | None = None


Event = Delta | Finished | Failed


async def stream_reply(reply: Message) -> AsyncIterator[Event]:
    """Says `reply` piece by piece and keeps it: flushed once a second, finalised in any case.

    No transaction and no connection is held while the model speaks. Closed early (its process
    goes down), the text so far stays, marked interrupted.
    """
    text: list[str] = []
    status = Status.INTERRUPTED
    changes: dict[str, object] = {}
    heart = asyncio.create_task(_flush_regularly(reply, text))
    try:
        built = await in_thread(_prompt_for, reply)
        changes["receipt"] = built.receipt()
        provider = providers.get(built.model)
        began = time.monotonic()
        async for event in provider.stream(built.said):
            if isinstance(event, Delta):
                if not text:
                    changes["first_token_ms"] = int((time.monotonic() - began) * 1000)
                text.append(event.text)
            else:
                changes |= _usage(event)
            yield event
        status = Status.COMPLETE
    except ProviderError as error:
        log.warning("reply_failed message=%s reason=%s cause=%r", reply.pk, error, error.__cause__)
        status, changes["error"] = Status.FAILED, error.reason
        yield Failed(error.reason, error.retry_after)
    except Exception:
        # Whatever went wrong, the reader is told and the message does not stay open for ever.
        log.exception("reply_failed message=%s", reply.pk)
        status, changes["error"] = Status.FAILED, "Strata itself failed while answering."
        yield Failed("Strata itself failed while answering.")
    finally:
        heart.cancel()
        await asyncio.shield(in_thread(finalise, reply, "".join(text), status, changes))


def _prompt_for(reply: Message) -> prompt.Prompt:
    """The prompt of a pending reply, built when its turn comes, from what is committed then."""
    fresh = Message.objects.select_related("parent__author", "session__project").get(pk=reply.pk)
    return prompt.build(prompt.Turn(fresh.session, fresh.parent))


def _usage(event: Finished) -> dict[str, object]:
    return {
        "model": event.model,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost": event.cost,
    }


async def _flush_regularly(reply: Message, text: list[str]) -> None:
    """Writes the text so far, and with it the sign of life, until it is cancelled."""
    while True:
        await in_thread(_flush, reply, "".join(text))
        await asyncio.sleep(FLUSH_SECONDS)


def _flush(reply: Message, text: str) -> None:
    # Conditional: a flush that was under way while the reply was finalised changes nothing.
    Message.objects.unfinished().filter(pk=reply.pk).update(
        text=text, status=Status.STREAMING if text else Status.PENDING, heartbeat_at=Now()
    )


@transaction.atomic
def finalise(reply: Message, text: str, status: str, changes: Mapping[str, object]) -> bool:
    """Gives `reply` its last text and status, once; False when it already had them."""
    session = Session.objects.select_for_update().get(pk=reply.session_id)
    done = Message.objects.unfinished().filter(pk=reply.pk)
    if not done.update(text=text, tokens=tokens.count(text), status=status, **changes):
        return False
    session.touch(timezone.now())
    session.save(update_fields=["version", "last_activity_at"])
    reply.refresh_from_db()
    message_changed.send(sender=Message, message=reply)
    transaction.on_commit(lambda: turn_finished.send(sender=Message, message=reply))
    return True
