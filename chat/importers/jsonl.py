"""JSON Lines with one message per line: `session`, `role`, `content`, `created_at`, optional
`author`.

Messages with the same `session` belong to one conversation, even in different files. Therefore a
later, longer export adds only its new messages. Lines of different conversations may be mixed, so
all messages are held in memory until the end of the file. Measured, this takes 0.6 KB per message
plus its text.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from itertools import count
from typing import BinaryIO

from django.utils.translation import gettext_noop as _

from chat.importers.base import (
    ImportedFile,
    ImportedMessage,
    ImportedSession,
    ImportRejectedError,
    ImportResult,
    InvalidItemError,
    parse_time,
    with_plausible_times,
)
from chat.importers.json_objects import JSONObject, parse_object
from chat.models import Role

MAX_LINE_BYTES = 4 * 2**20


def recognises(name: str, head: bytes) -> bool:
    """Return whether a complete line in `head` is a message, or the name has a known ending."""
    return any(map(_is_message, head.split(b"\n"))) or name.lower().endswith((".jsonl", ".ndjson"))


def _is_message(line: bytes) -> bool:
    try:
        return {"session", "role", "content"} <= _fields(line).keys()
    except InvalidItemError:
        return False


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the conversations in the order of their first line."""
    conversations: dict[str, list[ImportedMessage]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for number, line in _lines(document.open()):
        try:
            session, message = parse(line)
        except InvalidItemError as error:
            result.errors.append(_("Line %s") % number + f": {error}")
            continue
        seen[session, message.key] += 1
        # If a line (text, time and author) occurs again, it is another message.
        if (occurrence := seen[session, message.key]) > 1:
            message = replace(message, key=f"{message.key}-{occurrence}")
        conversations[session].append(message)
    if not conversations:
        raise ImportRejectedError(
            "\n".join([_("It has no line that is a message."), *result.errors[:1]])
        )
    for session, messages in conversations.items():
        # Stable sort: messages of the same second keep the order of the file.
        in_order = sorted(with_plausible_times(messages, None), key=lambda message: message.at)
        yield ImportedSession(session, session, in_order)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the number and text of each line that is not blank. Lines that are too long are cut."""
    for number in count(1):
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES + 1)
        if line.strip():
            yield number, line


def parse(line: bytes) -> tuple[str, ImportedMessage]:
    """Return the session's key and the message of one line. Raises `InvalidItemError`."""
    fields = _fields(line)
    role, author = fields.get("role"), fields.get("author")
    if role not in Role.values:
        raise InvalidItemError(
            _("The role is not one of the following") + f": {', '.join(Role.values)}"
        )
    if author is not None and not isinstance(author, str):
        raise InvalidItemError(_("The author is not a text."))
    content = fields.get("content")
    if not isinstance(content, str) or not content.strip():
        raise InvalidItemError(_("There is no content."))
    session = fields.get("session")
    if isinstance(session, bool) or not isinstance(session, str | int) or not str(session).strip():
        raise InvalidItemError(_("There is no session."))
    created_at, speaker = fields.get("created_at"), author or ""
    at = parse_time(created_at)
    if at is None:
        is_time = isinstance(created_at, str | int | float) and not isinstance(created_at, bool)
        raise InvalidItemError(
            _("The time in created_at cannot be read.")
            if is_time
            else _("There is no time in created_at.")
        )
    key = identity(role, at, speaker, content)
    return str(session), ImportedMessage(key, role, content, at, speaker)


def _fields(line: bytes) -> JSONObject:
    """Return the JSON object of one line. Raises `InvalidItemError`."""
    if len(line) > MAX_LINE_BYTES:
        raise InvalidItemError(_("It is longer than %s MB.") % (MAX_LINE_BYTES // 2**20))
    return parse_object(line)


def identity(role: str, at: datetime, speaker: str, text: str) -> str:
    """Return 32 hexadecimal digits that identify the message in every export that contains it."""
    whole = json.dumps([role, at.isoformat(), speaker, text])
    return sha256(whole.encode()).hexdigest()[:32]
