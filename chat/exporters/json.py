"""Everything that a session holds, for programs; `chat.importers.strata` reads it again.

    {"format": "strata-session", "version": 1, "session": {…}, "messages": [{…}, …]}

Messages come in the order they were written, each after its `parent`; the path that counts ends at
the session's `head`. Of a deleted message only its place is left, of images what they are called.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from chat.exporters.reading import everything
from chat.models import Attachment, Message, Session

MEDIA_TYPE = "application/json"
SUFFIX = ".json"
FORMAT = "strata-session"
VERSION = 1


def pieces(session: Session) -> Iterator[str]:
    opening = {"format": FORMAT, "version": VERSION, "session": _about(session)}
    # A line for each message, between an object's opening and its end.
    yield _written(opening)[:-1] + ', "messages": ['
    comma = "\n"
    for message in everything(session):
        yield comma + _written(_told(message))
        comma = ",\n"
    yield "\n]}\n"


def _written(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _about(session: Session) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "title": session.title,
        "visibility": session.visibility,
        "remembered": session.remembered,
        "status": session.status,
        "created_at": _time(session.created_at),
        "head": str(session.head_id) if session.head_id else None,
    }


def _told(message: Message) -> dict[str, Any]:
    author = message.author_name or (message.author.get_username() if message.author else "")
    return {
        "id": str(message.pk),
        "parent": str(message.parent_id) if message.parent_id else None,
        "role": message.role,
        "author": author,
        "content": "" if message.deleted_at else message.text,
        "images": [image.description or image.name for image in _images(message)],
        "status": message.status,
        "error": message.error,
        "model": message.model,
        "remembered": message.remembered,
        "created_at": _time(message.created_at),
        "edited_at": _time(message.edited_at),
        "deleted_at": _time(message.deleted_at),
    }


def _images(message: Message) -> list[Attachment]:
    return [] if message.deleted_at else list(message.attachments.all())


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
