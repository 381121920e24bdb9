"""Answers that leave nothing behind: no row, and no log of what was said."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from chat import prompt, providers
from chat.database import in_thread
from chat.models import Session, Visibility
from chat.options import Options
from chat.prompt import Turn
from chat.providers import Delta, Failed, Finished, ProviderError
from chat.requested import Loaded, Told, drafted, pictures
from projects.models import Project

log = logging.getLogger(__name__)


def turn_of(
    project: Project,
    user,
    told: Sequence[Told],
    loaded: Loaded,
    system: str = "",
    session: Session | None = None,
) -> Turn:
    """The reply to the last of the messages `told`, those before it its history.

    `session` is the conversation that they are about, if there is one. Else whoever asks is the
    only reader: they are told what a private chat of theirs would be told.
    """
    if session is None:
        session = Session(project=project, creator=user, visibility=Visibility.PRIVATE)
    said = [drafted(one, user, session=session, project=project) for one in told]
    return Turn(
        session,
        said[-1] if said else None,
        system=system,
        before=said[:-1],
        pictures={
            one.pk: shown
            for one, source in zip(said, told, strict=True)
            if (shown := pictures(source, loaded))
        },
    )


async def answer(turn: Turn, options: Options) -> AsyncIterator[Delta | Finished | Failed]:
    """The answer to `turn` piece by piece; its last event tells how it ended.

    No connection is held while the model speaks.
    """
    try:
        built = await in_thread(prompt.build, turn)
        provider = await asyncio.to_thread(providers.get, built.model, "passing")
        async for event in provider.stream(built.said, options):
            yield event
    except ProviderError as error:
        # Not what the provider wrote, which may repeat what was said.
        log.warning("answer_failed project=%s reason=%s", turn.project.pk, error.reason)
        yield Failed(error)
