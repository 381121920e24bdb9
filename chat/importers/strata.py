"""Strata's own export of a session, as `chat.exporters.json` writes it."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO
from uuid import UUID

from chat.exporters.json import FORMAT, VERSION
from chat.importers.base import ImportedMessage, ImportedSession, ImportResult, Unusable
from chat.importers.elements import Fields, conversations, list_in, object_in, text_in
from chat.importers.times import moment
from chat.models import FINAL, Role, SessionStatus, Status, Visibility

_OURS = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{\s*"format"\s*:\s*"' + FORMAT.encode() + b'"')


def recognises(name: str, head: bytes) -> bool:
    return bool(_OURS.match(head))


def sessions(name: str, file: BinaryIO, result: ImportResult) -> Iterator[ImportedSession]:
    """The session, as it was; a message that was still being said is interrupted."""
    return conversations(file, result, _session)


def _session(fields: Fields, damaged: list[str]) -> ImportedSession:
    if fields.get("format") != FORMAT:
        raise Unusable("It is no export of Strata's.")
    if fields.get("version") != VERSION:
        raise Unusable(f"It is of version {fields.get('version')}; this Strata reads {VERSION}.")
    about = object_in(fields, "session")
    key = text_in(about, "id")
    if not key:
        raise Unusable("The session has no id.")
    messages: dict[str, ImportedMessage] = {}
    for number, value in enumerate(list_in(fields, "messages"), 1):
        try:
            message = _message(value, messages)
        except Unusable as reason:
            damaged.append(f"Message {number}: {reason}")
        else:
            messages[message.key] = message
    head = text_in(about, "head")
    return ImportedSession(
        key,
        text_in(about, "title"),
        list(messages.values()),
        is_tree=True,
        head=head if head in messages else None,
        id=_id(key),
        visibility=_one_of(Visibility.values, about, "visibility", Visibility.PRIVATE),
        status=_one_of(SessionStatus.values, about, "status", SessionStatus.ACTIVE),
        remembered=about.get("remembered") is not False,
        created_at=moment(about.get("created_at")),
    )


def _message(value: object, earlier: dict[str, ImportedMessage]) -> ImportedMessage:
    if not isinstance(value, dict):
        raise Unusable("It is no message.")
    key, parent = text_in(value, "id"), text_in(value, "parent")
    role, at = text_in(value, "role"), moment(value.get("created_at"))
    if not key or role not in Role.values or at is None:
        raise Unusable("It has no id, no role or no time.")
    return ImportedMessage(
        key,
        role,
        text_in(value, "content"),
        at,
        speaker=text_in(value, "author"),
        parent=parent if parent in earlier else None,
        model=text_in(value, "model"),
        status=_one_of(FINAL, value, "status", Status.INTERRUPTED),
        error=text_in(value, "error"),
        remembered=value.get("remembered") is not False,
        edited_at=_time(value, "edited_at"),
        deleted_at=_time(value, "deleted_at"),
    )


def _time(fields: Fields, name: str) -> datetime | None:
    return moment(fields.get(name))


def _one_of(values: list[str] | tuple[str, ...], fields: Fields, name: str, otherwise: str) -> str:
    value = text_in(fields, name)
    return value if value in values else otherwise


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
