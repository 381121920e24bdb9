"""Replies while they grow: what they have said is written once a second, all of them together.

One by one, the writes of thirty streams took a tenth of their process's time.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import Error, connection

from chat.database import in_thread
from chat.models import Message, Status
from chat.models.messages import UNFINISHED

log = logging.getLogger(__name__)

# Seconds between two writes of a growing reply, and between two signs of life of a silent one.
FLUSH_SECONDS = 1.0
# A reply whose row somebody else holds is not waited for: the next write is a second away. One
# that was finalised meanwhile is left as it is.
FLUSH = """
    WITH free AS (
        SELECT id FROM chat_message
        WHERE project_id = %(project)s AND id = ANY (%(ids)s) AND status = ANY (%(unfinished)s)
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE chat_message AS message
    SET text = said.text,
        status = CASE said.text WHEN '' THEN %(pending)s ELSE %(streaming)s END,
        heartbeat_at = statement_timestamp()
    FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS said (id, text) JOIN free USING (id)
    WHERE message.project_id = %(project)s AND message.id = said.id
"""

# What grows in each event loop: project and pieces of text, by reply.
_growing: dict[AbstractEventLoop, dict[UUID, tuple[UUID, list[str]]]] = {}
_writers: dict[AbstractEventLoop, Task[None]] = {}


@contextmanager
def growing(reply: Message, text: list[str]) -> Iterator[None]:
    """Until it is left, the `text` so far of `reply` is written, and with it the sign of life."""
    loop = asyncio.get_running_loop()
    here = _growing.setdefault(loop, {})
    here[reply.pk] = reply.project_id, text
    if loop not in _writers:
        _writers[loop] = loop.create_task(_write_regularly(here))
    try:
        yield
    finally:
        del here[reply.pk]
        if not here:
            del _growing[loop]
            _writers.pop(loop).cancel()


async def _write_regularly(here: dict[UUID, tuple[UUID, list[str]]]) -> None:
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        said = [(project, reply, "".join(text)) for reply, (project, text) in here.items()]
        try:
            await in_thread(flush, said)
        except Exception:
            # Whatever it was: no reply of this process shows that it lives when this ends.
            log.exception("flush_failed")


def flush(said: Iterable[tuple[UUID, UUID, str]]) -> None:
    """Writes what was said so far, given as project, reply and text."""
    for project, replies in groupby(sorted(said), key=lambda one: one[0]):
        try:
            _flush(project, list(replies))
        except Error:
            # The next flush, or the end, brings what this one could not.
            log.warning("flush_failed project=%s", project)


def _flush(project: UUID, said: Sequence[tuple[UUID, UUID, str]]) -> None:
    told: dict[str, Any] = {
        "project": project,
        "ids": [reply for _, reply, _ in said],
        "texts": [text for _, _, text in said],
        "unfinished": [status.value for status in UNFINISHED],
        "pending": Status.PENDING.value,
        "streaming": Status.STREAMING.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(FLUSH, told)
