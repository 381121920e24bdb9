"""LoCoMo (Maharana et al., 2024): conversations of two people over months, in numbered sessions.

`session_N` is a list of turns `{speaker, dia_id, text, blip_caption?}`. `session_N_date_time` is
the time of the session, such as "1:56 pm on 8 May, 2023", which is read as UTC.
https://github.com/snap-research/locomo
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import chain

from django.utils.translation import gettext_noop as _

from chat.importers.base import (
    ImportedFile,
    ImportedMessage,
    ImportedSession,
    ImportRejectedError,
    ImportResult,
)
from chat.models import Role

SESSION = re.compile(r"session_([1-9][0-9]{0,5})")
MAX_FILE_BYTES = 64 * 2**20
# The time between two turns, because only sessions have a time in the file and turns need an order.
TURN_INTERVAL = timedelta(seconds=30)

Conversation = dict[str, object]


def recognises(name: str, head: bytes) -> bool:
    return bool(re.search(rb'"session_\d+_date_time"\s*:', head)) and b'"dia_id"' in head


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the sessions in the order of their numbers, without empty ones."""
    conversation = _read(document)
    turns = {number: _turns(conversation, number, result) for number in _numbers(conversation)}
    messages = list(chain.from_iterable(turns.values()))
    if not messages:
        raise ImportRejectedError(
            "\n".join([_("It has no turn of a conversation."), *result.errors[:1]])
        )
    identity, people = _identity(messages[0]), _people(conversation, messages)
    for number, session in turns.items():
        if session:
            yield ImportedSession(f"{identity}/{number}", f"{people}, session {number}", session)


def _read(document: ImportedFile) -> Conversation:
    text = document.open().read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise ImportRejectedError(_("It is longer than %s MB.") % (MAX_FILE_BYTES // 2**20))
    try:
        conversation = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ImportRejectedError(_("It is not JSON.")) from None
    if not isinstance(conversation, dict):
        raise ImportRejectedError(_("It is not a LoCoMo conversation."))
    return conversation


def _numbers(conversation: Conversation) -> list[int]:
    """Return the numbers of the sessions that have turns."""
    matches = ((SESSION.fullmatch(name), turns) for name, turns in conversation.items())
    return sorted(int(match[1]) for match, turns in matches if match and turns)


def _turns(conversation: Conversation, number: int, result: ImportResult) -> list[ImportedMessage]:
    """Return the messages of session `number`. Errors of damaged turns are added to `result`."""
    value = conversation[f"session_{number}"]
    turns = value if isinstance(value, list) else [value]
    place = _("Session %s") % number
    try:
        # Such as "1:56 pm on 8 May, 2023".
        text = str(conversation.get(f"session_{number}_date_time"))
        start = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        times = [start + index * TURN_INTERVAL for index in range(len(turns))]
    except (ValueError, OverflowError):
        result.errors.append(f"{place}: " + _("Its date and time cannot be read."))
        return []
    messages: dict[str, ImportedMessage] = {}
    for index, (turn, at) in enumerate(zip(turns, times, strict=True)):
        message = _message(turn, at)
        turn_place = f"{place}: " + _("Turn %s") % (index + 1)
        if message is None:
            result.errors.append(f"{turn_place}: " + _("It is not a turn."))
        elif message.key in messages:
            result.errors.append(f"{turn_place}: {message.key}: " + _("It occurs twice."))
        else:
            messages[message.key] = message
    return list(messages.values())


def _message(turn: object, at: datetime) -> ImportedMessage | None:
    """Return the message of one turn, or None if it has no speaker, id or text."""
    if not isinstance(turn, dict):
        return None
    key, speaker, text = (turn.get(field) for field in ("dia_id", "speaker", "text"))
    if not (isinstance(key, str) and isinstance(speaker, str) and isinstance(text, str) and key):
        return None
    if caption := turn.get("blip_caption"):
        text = f"{text} [shares {caption}]"
    return ImportedMessage(key, Role.USER, text, at, speaker)


def _identity(first: ImportedMessage) -> str:
    """Return the identity of a conversation: it depends on the first message, not the file name."""
    beginning = json.dumps([first.at.isoformat(), first.speaker, first.text])
    return sha256(beginning.encode()).hexdigest()[:32]


def _people(conversation: Conversation, messages: Iterable[ImportedMessage]) -> str:
    named = [conversation.get("speaker_a"), conversation.get("speaker_b")]
    people = named if all(named) else dict.fromkeys(message.speaker for message in messages)
    return " and ".join(map(str, people))
