"""Everything that a session holds, for programs; `chat.importers.strata` reads it again.

    {"format": "strata-session", "version": 1, "session": {…}, "messages": [{…}, …]}

Messages come in the order they were written, each after its `parent`; the path that counts ends at
the session's `head`. With each come its earlier texts, the reactions to it and, in base64, its
images. Of a deleted message only its place is left.
"""

import json
import logging
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from chat.exporters.reading import everything
from chat.images import Encoded
from chat.models import Attachment, Message, MessageRevision, Reaction, Session
from chat.seals import seal

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/json"
SUFFIX = ".json"
FORMAT = "strata-session"
VERSION = 1
T = TypeVar("T")


def pieces(session: Session) -> Iterator[str]:
    opening = {"format": FORMAT, "version": VERSION, "session": _about(session)}
    # A line for each message, between an object's opening and its end.
    yield _written(opening)[:-1] + ', "messages": ['
    comma = "\n"
    for message in everything(session, "revisions__edited_by", "reactions__user"):
        # Its images are last, since one of them at a time is in memory.
        yield comma + _written(_told(message))[:-1] + ', "images": ['
        yield from _images(message)
        yield "]}"
        comma = ",\n"
    yield "\n]}\n"


def _images(message: Message) -> Iterator[str]:
    comma = ""
    for image in _of(message, message.attachments.all()):
        yield comma + _written(_image(image))
        comma = ", "


def _written(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _about(session: Session) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "kind": session.kind,
        "title": session.title,
        "visibility": session.visibility,
        "remembered": session.remembered,
        "status": session.status,
        "created_at": _time(session.created_at),
        "title_by_hand": session.title_by_hand,
        "pinned": session.pinned,
        "archived_at": _time(session.archived_at),
        "history_limit": session.history_limit,
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
        "tool_calls": [] if message.deleted_at else message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "version": message.version,
        "status": message.status,
        "error": message.error,
        "model": message.model,
        "input_tokens": message.input_tokens,
        "output_tokens": message.output_tokens,
        "cost": None if message.cost is None else str(message.cost),
        "first_token_ms": message.first_token_ms,
        "remembered": message.remembered,
        "created_at": _time(message.created_at),
        "edited_at": _time(message.edited_at),
        "deleted_at": _time(message.deleted_at),
        "revisions": [_revision(it) for it in _of(message, message.revisions.all())],
        "reactions": [_reaction(it) for it in _of(message, message.reactions.all())],
    }


def _of(message: Message, rows: Iterable[T]) -> Iterable[T]:
    """What belongs to a message, unless it was deleted."""
    return rows if message.deleted_at is None else ()


def _revision(revision: MessageRevision) -> dict[str, Any]:
    return {
        "version": revision.version,
        "content": revision.text,
        "edited_by": revision.edited_by.get_username() if revision.edited_by else None,
        "edited_at": _time(revision.edited_at),
    }


def _reaction(reaction: Reaction) -> dict[str, Any]:
    return {"user": reaction.user.get_username(), "emoji": reaction.emoji}


def _image(image: Attachment) -> dict[str, Any]:
    try:
        with image.file.open("rb") as file:
            data = file.read()
    except FileNotFoundError:
        log.error("image_missing attachment=%s", image.pk)
        data = b""
    made = Encoded(data, image.media_type, image.width, image.height, image.sha256)
    return {
        "name": image.name,
        "description": image.description,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "data": b64encode(data).decode(),
        "seal": seal(made),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
