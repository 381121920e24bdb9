"""Memories of another program, as a conversation on which proposed entries are based."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from django.utils import timezone

from chat.importers.base import ImportedMessage, ImportedSession
from chat.models import Role
from projects.core import token_counting

# The maximum length of a message in tokens. The entry proposed from it is reviewed as a whole.
MAX_PART_TOKENS = 1_500
# Texts longer than MAX_PART_TOKENS × this are split without counting their tokens.
MAX_CHARS_PER_TOKEN = 16

_PARAGRAPHS = re.compile(r"(?<=\n\n)(?!\n)")
_LINES = re.compile(r"(?<=\n)")
_SENTENCES = re.compile(r"(?<=[.!?…]\s)|(?<=[。！？])")


def memories_session(program: str, owner, texts: Iterable[str]) -> ImportedSession:
    """Return the memories of `program` about `owner`. Equal texts become the same message."""
    now = timezone.now()
    parts = {
        sha256(part.encode()).hexdigest()[:32]: part for text in texts for part in split_text(text)
    }
    messages = [
        ImportedMessage(key, Role.ASSISTANT, part, now, speaker=program)
        for key, part in parts.items()
    ]
    # As if written by hand, so that no title is made from the messages.
    title = f"Memories from {program}"
    return ImportedSession(f"memories:{owner.pk}", title, messages, title_by_hand=True)


def split_text(text: str) -> list[str]:
    """Split `text` into parts of at most MAX_PART_TOKENS tokens, at the end of a paragraph, line,
    sentence or word.
    """
    return [
        part.strip() for part in _parts(text, [_PARAGRAPHS, _LINES, _SENTENCES]) if part.strip()
    ]


def _parts(text: str, cuts: list[re.Pattern[str]]) -> Iterator[str]:
    if _length(text) <= MAX_PART_TOKENS:
        yield text
    elif not cuts:
        yield from _cut(text)
    else:
        part, room = "", MAX_PART_TOKENS
        for piece in cuts[0].split(text):
            if (length := _length(piece)) > room:
                yield part
                *whole, piece = _parts(piece, cuts[1:])
                yield from whole
                part, room, length = "", MAX_PART_TOKENS, _length(piece)
            part += piece
            room -= length
        yield part


def _length(text: str) -> int:
    """Return the number of tokens. For a very long text, any number above MAX_PART_TOKENS."""
    return (
        token_counting.count(text)
        if len(text) <= MAX_PART_TOKENS * MAX_CHARS_PER_TOKEN
        else MAX_PART_TOKENS + 1
    )


def _cut(text: str) -> Iterator[str]:
    """Yield parts of limited length. They end after a space if possible."""
    start = 0
    while start < len(text):
        head = token_counting.truncate(
            text[start : start + MAX_PART_TOKENS * MAX_CHARS_PER_TOKEN], MAX_PART_TOKENS
        )
        spaced = head.rfind(" ") + 1
        start += len(head)
        if spaced and start < len(text):
            start += spaced - len(head)
            head = head[:spaced]
        yield head
