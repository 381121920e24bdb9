"""Exports everything in a session as JSON, which `chat.importers.strata` imports again.

    {"format": "strata-session", "version": 1, "session": {…}, "messages": [{…}, …]}

Messages are in the order of creation, each after its `parent`; the active path ends at the
session's `head`. Each message has its earlier texts, its reactions and, in base64, its images. A
deleted message has none of these and no text.
"""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from chat.attachments.images import EncodedImage, sign
from chat.exporters.messages import iter_messages
from chat.models import Attachment, Message, Session

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/json"
SUFFIX = ".json"
FORMAT = "strata-session"
VERSION = 1


def render(session: Session) -> Iterator[str]:
    header = {"format": FORMAT, "version": VERSION, "session": _session_fields(session)}
    # A line for each message, inserted before the closing bracket of the header.
    yield _dump(header)[:-1] + ', "messages": ['
    separator = "\n"
    for message in iter_messages(session, "revisions__edited_by", "reactions__user"):
        # Images come last: only one of them is in memory at a time.
        yield separator + _dump(_message_fields(message))[:-1] + ', "images": ['
        for index, image in enumerate(() if message.deleted_at else message.attachments.all()):
            yield (", " if index else "") + _dump(_image_fields(image))
        yield "]}"
        separator = ",\n"
    yield "\n]}\n"


def _dump(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _session_fields(session: Session) -> dict[str, Any]:
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


def _message_fields(message: Message) -> dict[str, Any]:
    author = message.author_name or (message.author.get_username() if message.author else "")
    deleted = message.deleted_at is not None
    return {
        "id": str(message.pk),
        "parent": str(message.parent_id) if message.parent_id else None,
        "role": message.role,
        "author": author,
        "content": "" if deleted else message.text,
        "tool_calls": [] if deleted else message.tool_calls,
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
        "revisions": [] if deleted else _revisions(message),
        "reactions": [] if deleted else _reactions(message),
    }


def _revisions(message: Message) -> list[dict[str, Any]]:
    return [
        {
            "version": revision.version,
            "content": revision.text,
            "edited_by": revision.edited_by.get_username() if revision.edited_by else None,
            "edited_at": _time(revision.edited_at),
        }
        for revision in message.revisions.all()
    ]


def _reactions(message: Message) -> list[dict[str, Any]]:
    return [{"user": it.user.get_username(), "emoji": it.emoji} for it in message.reactions.all()]


def _image_fields(image: Attachment) -> dict[str, Any]:
    try:
        with image.file.open("rb") as file:
            data = file.read()
    except FileNotFoundError:
        log.error("image_missing attachment=%s", image.pk)
        data = b""
    encoded = EncodedImage(data, image.media_type, image.width, image.height, image.sha256)
    return {
        "name": image.name,
        "description": image.description,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "data": b64encode(data).decode(),
        "seal": sign(encoded),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
