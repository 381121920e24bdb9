"""Exports a complete session as JSON, which `chat.importers.strata` can import.

    {"format": "strata-session", "version": 1, "session": {…}, "messages": [{…}, …]}

Messages are in order of creation, so that each follows its `parent`. The active path ends at the
session's `head`. Each message has its earlier texts, its reactions and its images (base64). A
deleted message has none of these, and no text.
"""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from chat.attachments.images import EncodedImage, sign
from chat.exporters.messages import iter_messages
from chat.models import Attachment, Message, Role, Session

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/json"
SUFFIX = ".json"
FORMAT = "strata-session"
VERSION = 1
# Columns that are exported under their own names, unchanged.
SESSION_COLUMNS = (
    *("kind", "title", "visibility", "remembered", "status"),
    *("title_by_hand", "pinned", "history_limit", "tags"),
    *("chat_model", "temperature", "reasoning_effort"),
)
MESSAGE_COLUMNS = (
    *("role", "tool_call_id", "version", "status", "error", "model"),
    *("input_tokens", "output_tokens", "first_token_ms", "remembered"),
)


def render(session: Session) -> Iterator[str]:
    header = {"format": FORMAT, "version": VERSION, "session": _session_fields(session)}
    # Remove the header's closing bracket, add one line for each message, then close the document.
    yield _dump(header)[:-1] + ', "messages": ['
    separator = "\n"
    for message in iter_messages(session, "revisions__edited_by", "reactions__user"):
        # Images come last, so that only one of them is in memory at a time.
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
        **{name: getattr(session, name) for name in SESSION_COLUMNS},
        "created_at": _time(session.created_at),
        "archived_at": _time(session.archived_at),
        "head": str(session.head_id) if session.head_id else None,
    }


def _message_fields(message: Message) -> dict[str, Any]:
    author = message.author_name
    if not author and message.author and message.role != Role.ASSISTANT:
        author = message.author.get_username()
    deleted = message.deleted_at is not None
    return {
        "id": str(message.pk),
        "parent": str(message.parent_id) if message.parent_id else None,
        **{name: getattr(message, name) for name in MESSAGE_COLUMNS},
        "author": author,
        "recorded_by": message.recorded_by or None,
        "content": "" if deleted else message.text,
        "tool_calls": [] if deleted else message.tool_calls,
        "lookups": [] if deleted else message.lookups,
        "cost": None if message.cost is None else str(message.cost),
        "created_at": _time(message.created_at),
        "edited_at": _time(message.edited_at),
        "deleted_at": _time(message.deleted_at),
        "revisions": [] if deleted else _revisions(message),
        "reactions": [
            {"user": it.user.get_username(), "emoji": it.emoji}
            for it in (() if deleted else message.reactions.all())
        ],
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
