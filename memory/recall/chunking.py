"""Chunking: messages become turns, the units of the search index. Pure functions."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from chat.models import Message
from projects.core import token_counting

# Tokens of the text (cl100k_base).
MAX_CHUNK_TOKENS = 128
# A shorter message has too little content to be a useful result.
MIN_MESSAGE_CHARS = 20
INDEXED_ROLES = frozenset({"user", "assistant"})
# A message with one of these words is indexed even if it is short.
TASK_WORDS = frozenset(Path(__file__).with_name("task_words.txt").read_text().split())

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|\n+")
_QUESTION_MARK = re.compile(r"[?？¿؟]")


@dataclass(frozen=True)
class ChunkingRules:
    min_chars: int = MIN_MESSAGE_CHARS
    max_tokens: int = MAX_CHUNK_TOKENS
    merge: bool = True


@dataclass(frozen=True)
class TurnChunk:
    """The messages from `first_seq` to `last_seq`, or part number `part` of one long message."""

    first_seq: int
    last_seq: int
    part: int
    role: str
    author_id: int | None
    speaker: str
    text: str
    at: datetime

    @classmethod
    def of(cls, first: Message, last: Message, text: str, part: int = 0) -> "TurnChunk":
        return cls(
            first.seq,
            last.seq,
            part,
            first.role,
            first.author_id,
            first.speaker,
            text,
            first.created_at,
        )


@dataclass
class _Buffer:
    """The messages of the current turn."""

    messages: list[Message] = field(default_factory=list)
    tokens: int = 0

    def has_room(self, tokens: int, rules: ChunkingRules) -> bool:
        return rules.merge and bool(self.messages) and self.tokens + tokens + 1 <= rules.max_tokens

    def has_speaker_of(self, message: Message) -> bool:
        last = self.messages[-1]
        return (last.role, last.speaker) == (message.role, message.speaker)

    def flush(self) -> Iterator[TurnChunk]:
        if self.messages:
            text = "\n".join(message.text.strip() for message in self.messages)
            yield TurnChunk.of(self.messages[0], self.messages[-1], text)
        self.messages, self.tokens = [], 0


def chunk_messages(
    messages: Iterable[Message], rules: ChunkingRules = ChunkingRules()
) -> Iterator[TurnChunk]:
    """Return the turns of a conversation, whose messages are in order.

    Messages of one role and speaker are merged as long as they fit. A message of another role ends
    a turn even if it is not indexed. Chunking that starts at the first message of any turn returns
    the same turns from there.
    """
    buffer = _Buffer()
    for message in messages:
        if buffer.messages and not buffer.has_speaker_of(message):
            yield from buffer.flush()
        if message.role not in INDEXED_ROLES or not is_indexable(message.text, rules):
            continue
        tokens = token_counting.count(message.text.strip())
        if not buffer.has_room(tokens, rules):
            yield from buffer.flush()
        if tokens > rules.max_tokens:
            for part, text in enumerate(split_text(message.text.strip(), rules.max_tokens)):
                yield TurnChunk.of(message, message, text, part)
        else:
            buffer.messages.append(message)
            buffer.tokens += tokens + 1
    yield from buffer.flush()


def is_indexable(text: str, rules: ChunkingRules = ChunkingRules()) -> bool:
    """Return whether a message is long enough, asks a question or mentions a task."""
    text = text.strip()
    if len(text) >= rules.min_chars:
        return True
    words = re.findall(r"[^\W\d_]+", text.lower())
    return bool(_QUESTION_MARK.search(text)) or not TASK_WORDS.isdisjoint(words)


def split_text(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` into parts of at most `max_tokens` tokens, at sentence ends where possible.

    Only white space between the parts is lost.
    """
    part = ""
    for sentence in _sentences(text, max_tokens):
        longer = f"{part} {sentence}" if part else sentence
        if part and token_counting.count(longer) > max_tokens:
            yield part
            part = sentence
        else:
            part = longer
    if part:
        yield part


def _sentences(text: str, max_tokens: int) -> Iterator[str]:
    """Return the sentences of `text`; a sentence that is too long is cut at spaces."""
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end].strip()
        start = end
        while token_counting.count(sentence) > max_tokens:
            head = token_counting.truncate(sentence, max_tokens) or sentence[:1]
            space = head.rfind(" ")
            # A space in the first half would make the part too short.
            head = head[:space] if space > len(head) // 2 else head
            yield head.strip()
            sentence = sentence[len(head) :].strip()
        if sentence:
            yield sentence
