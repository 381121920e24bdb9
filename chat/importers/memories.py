"""What another program remembered, as a conversation: the record of what is proposed from it."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from django.utils import timezone

from chat import tokens
from chat.importers.base import ImportedMessage, ImportedSession
from chat.models import Role

# Tokens of one message, since what is proposed from it is taken or refused as a whole.
LONGEST = 1_500
# Characters a token, at the most: what is longer is not counted first.
MOST_CHARACTERS = 16

_PARAGRAPHS = re.compile(r"(?<=\n\n)(?!\n)")
_LINES = re.compile(r"(?<=\n)")
_SENTENCES = re.compile(r"(?<=[.!?…]\s)|(?<=[。！？])")


def conversation(program: str, owner, texts: Iterable[str]) -> ImportedSession:
    """What `program` remembered of `owner`, said now. The same text is always the same message."""
    now = timezone.now()
    parts = {_identity(part): part for text in texts for part in split(text)}
    messages = [
        ImportedMessage(key, Role.ASSISTANT, part, now, speaker=program)
        for key, part in parts.items()
    ]
    return ImportedSession(f"memories:{owner.pk}", f"Memories from {program}", messages)


def _identity(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def split(text: str) -> list[str]:
    """`text` in parts of at most LONGEST tokens, cut where a paragraph ends, or else a line, a
    sentence or a word.
    """
    return [
        part.strip() for part in _parts(text, [_PARAGRAPHS, _LINES, _SENTENCES]) if part.strip()
    ]


def _parts(text: str, cuts: list[re.Pattern[str]]) -> Iterator[str]:
    if _length(text) <= LONGEST:
        yield text
    elif not cuts:
        yield from _cut(text)
    else:
        held, room = "", LONGEST
        for piece in cuts[0].split(text):
            if (length := _length(piece)) > room:
                yield held
                *whole, piece = _parts(piece, cuts[1:])
                yield from whole
                held, room, length = "", LONGEST, _length(piece)
            held += piece
            room -= length
        yield held


def _length(text: str) -> int:
    """In tokens; no number that counts for what is too long at first sight."""
    return tokens.count(text) if len(text) <= LONGEST * MOST_CHARACTERS else LONGEST + 1


def _cut(text: str) -> Iterator[str]:
    """Parts that end after a space where there is one."""
    start = 0
    while start < len(text):
        head = tokens.cut(text[start : start + LONGEST * MOST_CHARACTERS], LONGEST)
        spaced = head.rfind(" ") + 1
        start += len(head)
        if spaced and start < len(text):
            start += spaced - len(head)
            head = head[:spaced]
        yield head
