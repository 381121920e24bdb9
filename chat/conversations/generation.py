"""Generate replies: stream the model's answer, store it once a second, and finalise it."""

import asyncio
import logging
import time
from asyncio import AbstractEventLoop, Task
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from uuid import UUID

from django.db import Error, IntegrityError, OperationalError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat import providers
from chat.conversations import admission
from chat.conversations.lookups import TRUNCATED, Answer, LookupLoop, LookupsChanged
from chat.conversations.messages import lock_session
from chat.models import Call, CallKind, Message, Session, Status
from chat.models.messages import UNFINISHED, failed_model_note
from chat.prompt import builder
from chat.prompt.types import dump_tool_calls
from chat.providers import Delta, Failed, Finished, ProviderError, Thought, booking
from chat.providers.base import ReplyOptions
from chat.providers.booking import CallAccount, Payer
from chat.signals import message_changed, reply_stored, turn_finished
from projects.core import token_counting
from projects.core.database import PreparedObjects, fetch, in_thread
from projects.core.text import storable
from projects.models import Project

log = logging.getLogger(__name__)

# Seconds between attempts to store an ended reply. The database may restart meanwhile.
FINALISE_RETRIES_S = (0.5, 1, 2, 4, 8, 15)
# Seconds between two writes of an unfinished reply. Each write is also a heartbeat.
FLUSH_INTERVAL_S = 1.0
SERVER_STOPPED = _("The server was stopped before this reply was finished.")
INTERNAL_ERROR = _("Strata failed to generate this reply.")
FILTERED = _("The provider blocked the rest of the reply.")
IMAGES_NOT_SEEN = _("This model cannot see images. It received their descriptions instead.")
MESSAGE_CUT = _("The message is too long for this model, which received only the beginning of it.")
MAX_ERROR_CHARS = 500
# One statement updates all replies of a project, because separate writes of thirty streams took a
# tenth of the process's CPU time. A locked row is skipped, because the next flush follows a second
# later. A reply that has been finalised in the meantime is not changed.
FLUSH = """
    WITH free AS (
        SELECT id FROM chat_message
        WHERE project_id = %(project)s AND id = ANY (%(ids)s) AND status = ANY (%(unfinished)s)
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE chat_message AS message
    SET text = partial.text,
        status = CASE partial.text WHEN '' THEN %(pending)s ELSE %(streaming)s END,
        heartbeat_at = statement_timestamp()
    FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS partial (id, text) JOIN free USING (id)
    WHERE message.project_id = %(project)s AND message.id = partial.id
"""

# The unfinished replies of each event loop: (project, chunks of text) by the id of the reply.
_unfinished: dict[AbstractEventLoop, dict[UUID, tuple[UUID, list[str]]]] = {}
_flush_tasks: dict[AbstractEventLoop, Task[None]] = {}


async def stream_reply(
    reply: Message,
    is_stopped: Callable[[], bool] = lambda: False,
    options: ReplyOptions = ReplyOptions(),
    payer: Payer = Payer(),
) -> AsyncIterator[Delta | Thought | LookupsChanged | Finished | Failed]:
    """Generate `reply` chunk by chunk, store it once a second, and finalise it in any case. Lookups
    of the model are stored at once. Its reasoning is yielded, but never stored.

    The last event is Finished or Failed, unless the reply was cancelled. A cancelled reply keeps
    the text received so far. Its status is "stopped" if a reader stopped it (`is_stopped()`), or
    "interrupted" if the process ended. No transaction or database connection is held while the
    model answers.
    """
    chunks: list[str] = []
    answer: Answer | None = None
    status = Status.INTERRUPTED
    changes: dict[str, object] = {"error": SERVER_STOPPED}
    account = CallAccount(reply.project_id, CallKind.REPLY, payer, reply.session_id, reply.pk)
    with flushing(reply, chunks):
        try:
            try:
                answer = await in_thread(_prepare, reply, options, account)
            finally:
                admission.release()
            began = time.monotonic()
            async for event in answer.stream():
                if isinstance(event, Delta):
                    if not chunks:
                        changes["first_token_ms"] = int((time.monotonic() - began) * 1000)
                    chunks.append(storable(event.text))
                    yield Delta(chunks[-1])
                elif isinstance(event, Thought):
                    yield Thought(storable(event.text))
                elif isinstance(event, LookupsChanged):
                    changes |= _lookup_fields(answer.loop)
                    yield event
                else:
                    changes |= _completion_fields(event, answer)
                    status = Status.COMPLETE
                    yield event
        except ProviderError as error:
            cause = error.__cause__
            log.warning("reply_failed message=%s reason=%s cause=%r", reply.pk, error, cause)
            status, changes["error"] = Status.FAILED, error.message
            yield Failed(error)
        except asyncio.CancelledError:
            if is_stopped():
                status, changes["error"] = Status.STOPPED, ""
            raise
        except Exception:
            # Also report unexpected errors to the reader, and never leave the message unfinished.
            log.exception("reply_failed message=%s", reply.pk)
            status, changes["error"] = Status.FAILED, INTERNAL_ERROR
            yield Failed(ProviderError(INTERNAL_ERROR, status=500, code="internal_error"))
        finally:
            if answer is not None:
                changes |= {"receipt": answer.loop.receipt(), "model": answer.loop.prompt.model}
            text, calls = "".join(chunks), account.calls
            await asyncio.shield(_finalise_with_retries(reply, text, status, changes, calls))


def _prepare(reply: Message, options: ReplyOptions, account: CallAccount) -> Answer:
    """Build the prompt of a pending reply from committed data."""
    rows = _pending_replies(reply.pk)
    if not rows:
        raise Message.DoesNotExist
    [fresh] = rows
    turn = builder.Turn(
        fresh.session, fresh.parent, system=options.system, chosen_model=fresh.model
    )

    def store(loop: LookupLoop) -> None:
        # Stored at each lookup, so that the receipt contains it even if this process dies.
        unfinished = Message.objects.unfinished().filter(project=fresh.project_id, pk=reply.pk)
        unfinished.update(**_lookup_fields(loop))

    return Answer(turn, options, "reply", account, store).prepare()


@PreparedObjects.of(UUID)
def _pending_replies(pk: UUID) -> QuerySet[Message]:
    return Message.objects.filter(pk=pk).select_related("parent__author", "session__project")


def _lookup_fields(loop: LookupLoop) -> dict[str, object]:
    return {"lookups": [asdict(lookup) for lookup in loop.lookups], "receipt": loop.receipt()}


def _completion_fields(event: Finished, answer: Answer) -> dict[str, object]:
    notices = []
    if failed := answer.loop.failed_model:
        notices.append(failed_model_note(failed))
    if event.unseen or _has_described_images(answer):
        notices.append(IMAGES_NOT_SEEN)
    if _has_cut_message(answer):
        notices.append(MESSAGE_CUT)
    if event.cut_off:
        notices.append(TRUNCATED)
    if event.filtered:
        notices.append(FILTERED)
    return {
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost": event.cost,
        "tool_calls": dump_tool_calls(event.calls),
        "error": "\n".join(notices)[:MAX_ERROR_CHARS],
    }


def _has_described_images(answer: Answer) -> bool:
    """Return whether the prompt describes images for a model that is known to accept none."""
    images, messages = answer.turn.images, answer.loop.prompt.messages
    has_images = any(it.source is not None and it.source.pk in images for it in messages)
    return has_images and not providers.supports_images(answer.turn.model)


def _has_cut_message(answer: Answer) -> bool:
    messages = answer.loop.prompt.messages
    return any(it.source is not None and len(it.text) < len(it.source.text) for it in messages)


async def _finalise_with_retries(
    reply: Message, text: str, status: str, changes: Mapping[str, object], calls: Sequence[Call]
) -> None:
    """Finalise the reply. Retry while the database restarts, so that no text is lost. Also retry if
    the user who requested the reply was deleted meanwhile.
    """
    for wait in FINALISE_RETRIES_S:
        try:
            await in_thread(finalise, reply, text, status, changes, calls)
            return
        except IntegrityError:
            booking.clear_payer(calls)
        except OperationalError:
            log.warning("finalise_failed message=%s next_try_in=%s", reply.pk, wait)
            await asyncio.sleep(wait)
    await in_thread(finalise, reply, text, status, changes, calls)


@transaction.atomic
def finalise(
    reply: Message,
    text: str,
    status: str,
    changes: Mapping[str, object],
    calls: Sequence[Call] = (),
) -> bool:
    """Store the final text and status of `reply`. Return False if nothing was stored, because it
    was already final or deleted.

    If the process of the reply had no database for some time, `sweep_interrupted` may have
    finalised the reply. It is then stored again, unless it has changed since. The model calls are
    booked even if nothing is stored, but not if the project was deleted.
    """
    final = {"text": text, "tokens": token_counting.count(text), "status": status, **changes}
    try:
        session = lock_session(reply.session)
    except Session.DoesNotExist:
        # Forgotten during the reply. If the project was deleted, its calls were deleted too.
        if Project.objects.filter(pk=reply.project_id).exists():
            _settle_again(reply, calls)
        return False
    rows = Message.objects.filter(pk=reply.pk)
    is_first = rows.unfinished().update(**final)
    if is_first:
        booking.settle(calls)
    else:
        _settle_again(reply, calls)
        swept = rows.filter(status=Status.INTERRUPTED, error=SERVER_STOPPED, deleted_at=None)
        if not swept.filter(version=reply.version).update(version=F("version") + 1, **final):
            return False
    session.touch(timezone.now())
    place = [session.version, session.last_activity_at, session.project_id, session.pk]
    fetch(_SAVE_CHANGE, place, prepared=True)
    [fresh] = _stored_replies(session.project_id, reply.pk)
    for name in _stored_replies.names:
        setattr(reply, name, getattr(fresh, name))
    reply.session = session
    reply_stored.send(sender=Message, session=session, message=reply)
    if not is_first:
        message_changed.send(sender=Message, session=session, messages=[reply])
    # `robust`: an error of a receiver of `turn_finished` is only logged.
    transaction.on_commit(lambda: turn_finished.send(sender=Message, message=reply), robust=True)
    return True


def _settle_again(reply: Message, calls: Sequence[Call]) -> None:
    """Book the calls of a reply. They replace the call that `lost_calls` may have added."""
    Call.objects.filter(project=reply.project_id, pk=reply.pk).delete()
    booking.settle(calls)


_SAVE_CHANGE = """
    UPDATE chat_session SET version = %s, last_activity_at = %s WHERE project_id = %s AND id = %s
"""


@PreparedObjects.of(UUID, UUID)
def _stored_replies(project: UUID, pk: UUID) -> QuerySet[Message]:
    return Message.objects.filter(project=project, pk=pk)


@contextmanager
def flushing(reply: Message, chunks: list[str]) -> Iterator[None]:
    """Within the block, write the text so far and the heartbeat of `reply` once a second.

    The block includes the finalisation, which waits for the database if necessary.
    """
    loop = asyncio.get_running_loop()
    replies = _unfinished.setdefault(loop, {})
    replies[reply.pk] = reply.project_id, chunks
    if loop not in _flush_tasks:
        _flush_tasks[loop] = loop.create_task(_flush_regularly(replies))
    try:
        yield
    finally:
        del replies[reply.pk]
        if not replies:
            del _unfinished[loop]
            _flush_tasks.pop(loop).cancel()


async def _flush_regularly(replies: dict[UUID, tuple[UUID, list[str]]]) -> None:
    while True:
        await asyncio.sleep(FLUSH_INTERVAL_S)
        texts = [(project, reply, "".join(chunks)) for reply, (project, chunks) in replies.items()]
        try:
            await in_thread(flush, texts)
        except Exception:
            # Catch every error: if this task ended, no reply of the process would have a heartbeat.
            log.exception("flush_failed")


def flush(texts: Iterable[tuple[UUID, UUID, str]]) -> None:
    """Write unfinished texts, given as (project, reply, text)."""
    for project, group in groupby(sorted(texts), key=lambda row: row[0]):
        rows = list(group)
        params = {
            "project": project,
            "ids": [reply for _, reply, _ in rows],
            "texts": [text for _, _, text in rows],
            "unfinished": [status.value for status in UNFINISHED],
            "pending": Status.PENDING.value,
            "streaming": Status.STREAMING.value,
        }
        try:
            fetch(FLUSH, params, prepared=True)
        except Error:
            # The next flush or the end of the reply will write the text.
            log.warning("flush_failed project=%s", project)
