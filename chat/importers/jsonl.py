"""One message a line: `session`, `role`, `content`, `created_at` and, if known, `author`.

A conversation is what shares a `session`, across files too, so that a longer export of it adds
what is new. Lines of different conversations may be mixed, so all messages of a file are held in
memory until its end: measured, their text and 0.6 KB more for each.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from itertools import count
from typing import BinaryIO

from chat.importers.base import (
    Document,
    ImportedMessage,
    ImportedSession,
    ImportResult,
    Refused,
    Unusable,
)
from chat.importers.fields import Fields, decoded, usable
from chat.importers.times import moment, settled
from chat.models import Role

LONGEST_LINE = 4 * 2**20  # bytes


def recognises(name: str, head: bytes) -> bool:
    """By any line in `head` that has the fields; by the name when the first is longer than that."""
    return any(map(_is_message, head.split(b"\n"))) or name.lower().endswith((".jsonl", ".ndjson"))


def _is_message(line: bytes) -> bool:
    try:
        return {"session", "role", "content"} <= _fields(line).keys()
    except Unusable:
        return False


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The conversations in the order in which the file first names them."""
    talk: dict[str, list[ImportedMessage]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for number, line in _lines(document.open()):
        try:
            session, message = parse(line)
        except Unusable as reason:
            result.errors.append(f"Line {number}: {reason}")
            continue
        seen[session, message.key] += 1
        talk[session].append(_told_apart(message, seen[session, message.key]))
    if not talk:
        raise Refused(f"It holds no line that is a message. {' '.join(result.errors[:1])}".strip())
    for session, messages in talk.items():
        # Stable: what was said in the same second keeps the file's order.
        in_order = sorted(settled(messages, None), key=lambda message: message.at)
        yield ImportedSession(session, session, in_order)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; of one that is too long, its beginning."""
    for number in count(1):
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        rest = line
        while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE + 1)
        if line.strip():
            yield number, line


def _told_apart(message: ImportedMessage, occurrence: int) -> ImportedMessage:
    """`message` with a key of its own when the same was said before at the same instant."""
    if occurrence == 1:
        return message
    return replace(message, key=f"{message.key}-{occurrence}")


def parse(line: bytes) -> tuple[str, ImportedMessage]:
    """The session's key and the message of one line. Raises Unusable with the reason."""
    fields = _fields(line)
    role, author = fields.get("role"), fields.get("author")
    if role not in Role.values:
        raise Unusable(f"The role is not one of {', '.join(Role.values)}.")
    if author is not None and not isinstance(author, str):
        raise Unusable("The author is not a text.")
    content = fields.get("content")
    if not isinstance(content, str) or not content.strip():
        raise Unusable("There is no content.")
    at, speaker = _moment(fields.get("created_at")), author or ""
    key = identity(role, at, speaker, content)
    return _session_key(fields), ImportedMessage(key, role, content, at, speaker)


def _fields(line: bytes) -> Fields:
    """The JSON object of one line. Raises Unusable."""
    if len(line) > LONGEST_LINE:
        raise Unusable(f"It is longer than {LONGEST_LINE // 2**20} MB.")
    return usable(decoded(line))


def _session_key(fields: Fields) -> str:
    key = fields.get("session")
    if isinstance(key, bool) or not isinstance(key, str | int) or not str(key).strip():
        raise Unusable("There is no session.")
    return str(key)


def _moment(value: object) -> datetime:
    at = moment(value)
    if at is not None:
        return at
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        raise Unusable("The time in created_at cannot be read.")
    raise Unusable("There is no time in created_at.")


def identity(role: str, at: datetime, speaker: str, text: str) -> str:
    """The same message has the same identity in every export. 32 hexadecimal digits."""
    whole = json.dumps([role, at.isoformat(), speaker, text])
    return sha256(whole.encode()).hexdigest()[:32]
