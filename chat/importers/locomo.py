"""A conversation of LoCoMo (Maharana et al., 2024): two people over months, in numbered sessions.

`session_N` is a list of turns `{speaker, dia_id, text, blip_caption?}` and `session_N_date_time`
its time, such as "1:56 pm on 8 May, 2023", taken as UTC. https://github.com/snap-research/locomo
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from chat.importers.base import Document, ImportedMessage, ImportedSession, ImportResult, Refused
from chat.models import Role

SESSION = re.compile(r"session_([1-9][0-9]{0,5})")
LONGEST = 64 * 2**20  # bytes
# Only sessions are dated; their turns are set apart so that they keep their order.
BETWEEN_TURNS = timedelta(seconds=30)

Conversation = dict[str, object]


def recognises(name: str, head: bytes) -> bool:
    return bool(re.search(rb'"session_\d+_date_time"\s*:', head)) and b'"dia_id"' in head


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The sessions in the order of their numbers; one without turns is left out."""
    conversation = _read(document)
    talks = {number: _talk(conversation, number, result) for number in _numbers(conversation)}
    said = [message for talk in talks.values() for message in talk]
    if not said:
        raise Refused(f"It holds no turn of a conversation. {' '.join(result.errors[:1])}".strip())
    identity, people = _identity(said[0]), _people(conversation, said)
    for number, talk in talks.items():
        if talk:
            yield ImportedSession(f"{identity}/{number}", f"{people}, session {number}", talk)


def _read(document: Document) -> Conversation:
    text = document.open().read(LONGEST + 1)
    if len(text) > LONGEST:
        raise Refused(f"It is longer than {LONGEST // 2**20} MB.")
    try:
        conversation = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Refused("It is not JSON.") from None
    if not isinstance(conversation, dict):
        raise Refused("It is not a LoCoMo conversation.")
    return conversation


def _numbers(conversation: Conversation) -> list[int]:
    """The numbers of the sessions that have turns."""
    matches = ((SESSION.fullmatch(name), turns) for name, turns in conversation.items())
    return sorted(int(match[1]) for match, turns in matches if match and turns)


def _talk(conversation: Conversation, number: int, result: ImportResult) -> list[ImportedMessage]:
    """The messages of session `number`; what is damaged is noted in `result`."""
    try:
        began = moment(conversation.get(f"session_{number}_date_time"))
    except ValueError:
        result.errors.append(f"Session {number}: its date and time cannot be read.")
        return []
    talk: dict[str, ImportedMessage] = {}
    turns = conversation[f"session_{number}"]
    for place, turn in enumerate(turns if isinstance(turns, list) else [turns]):
        message = _message(turn, began + place * BETWEEN_TURNS)
        if message is None:
            result.errors.append(f"Session {number}, turn {place + 1}: it is not a turn.")
        elif message.key in talk:
            result.errors.append(f"Session {number}, turn {place + 1}: {message.key} came before.")
        else:
            talk[message.key] = message
    return list(talk.values())


def _message(turn: object, at: datetime) -> ImportedMessage | None:
    """The message of one turn, or None when it lacks its speaker, its id or its text."""
    if not isinstance(turn, dict):
        return None
    key, speaker, text = (turn.get(field) for field in ("dia_id", "speaker", "text"))
    if not (isinstance(key, str) and isinstance(speaker, str) and isinstance(text, str) and key):
        return None
    if caption := turn.get("blip_caption"):
        text = f"{text} [shares {caption}]"
    return ImportedMessage(key, Role.USER, text, at, speaker)


def _identity(first: ImportedMessage) -> str:
    """What tells a conversation from others: how it began, whatever its file is called."""
    beginning = json.dumps([first.at.isoformat(), first.speaker, first.text])
    return sha256(beginning.encode()).hexdigest()[:32]


def _people(conversation: Conversation, said: Iterable[ImportedMessage]) -> str:
    named = [conversation.get("speaker_a"), conversation.get("speaker_b")]
    people = named if all(named) else dict.fromkeys(message.speaker for message in said)
    return " and ".join(map(str, people))


def moment(text: object) -> datetime:
    """The instant of "1:56 pm on 8 May, 2023", in UTC. Raises ValueError."""
    return datetime.strptime(str(text), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
