"""Answers requests without storing messages. Neither rows nor logs contain text of the request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from chat.conversations.generation import INTERNAL_ERROR
from chat.conversations.lookups import Answer, LookupsChanged
from chat.models import CallKind, Session, Visibility
from chat.openai_api.transcript import LoadedImages, TranscriptMessage, draft_message, prompt_images
from chat.prompt.builder import Turn
from chat.providers import Delta, Failed, Finished, ProviderError, ReplyOptions, Thought
from chat.providers.booking import CallAccount, Payer
from projects.core.database import in_thread
from projects.models import Project

log = logging.getLogger(__name__)


def stateless_turn(
    project: Project,
    user,
    transcript: Sequence[TranscriptMessage],
    loaded: LoadedImages,
    system: str = "",
    session: Session | None = None,
) -> Turn:
    """Return the turn that answers the last message of `transcript`.

    `session` is the session to which the request belongs, if any. Without it, the prompt is that of
    a private session of `user`.
    """
    if session is None:
        session = Session(project=project, creator=user, visibility=Visibility.PRIVATE)
    drafts = [draft_message(it, user, session=session, project=project) for it in transcript]
    return Turn(
        session,
        drafts[-1] if drafts else None,
        system=system,
        stateless_history=drafts[:-1],
        stateless_images={
            message.pk: images
            for message, source in zip(drafts, transcript, strict=True)
            if (images := prompt_images(source, loaded))
        },
    )


async def stream_answer(
    turn: Turn, options: ReplyOptions, payer: Payer
) -> AsyncIterator[Delta | Thought | LookupsChanged | Finished | Failed]:
    """Yield the answer to `turn` in pieces, then `Finished` or `Failed`.

    No database connection is held while the model answers.
    """
    account = CallAccount(turn.project.pk, CallKind.REPLY, payer)
    try:
        answer = await in_thread(Answer(turn, options, "stateless", account).prepare)
        async for event in answer.stream():
            yield event
    except ProviderError as error:
        # Do not log the provider's own text, because it may quote the prompt.
        log.warning("answer_failed project=%s reason=%s", turn.project.pk, error.message)
        yield Failed(error)
    except Exception as error:
        # Without this event, the client would get an empty answer. The error may quote the prompt.
        log.error("answer_failed project=%s error=%s", turn.project.pk, type(error).__name__)
        yield Failed(ProviderError(INTERNAL_ERROR, status=500, code="internal_error"))
    finally:
        if account.calls:
            await asyncio.shield(in_thread(account.settle))
