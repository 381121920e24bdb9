"""Chunking: messages become turns, the units of the search index. Pure functions."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from projects.core import token_counting

# Tokens of the text (cl100k_base).
MAX_CHUNK_TOKENS = 256
# A shorter message has too little content to be a useful result.
MIN_MESSAGE_CHARS = 20
INDEXED_ROLES = frozenset({"user", "assistant"})

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|\n+")
_QUESTION_MARK = re.compile(r"[?？¿؟]")
_VOWELS = "aeiou"


class ChunkableMessage(Protocol):
    """A message as chunking reads it. `author` distinguishes people with the same role."""

    @property
    def seq(self) -> int: ...
    @property
    def role(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def at(self) -> datetime: ...


@dataclass(frozen=True)
class ChunkingRules:
    """Parameters of chunking. `task_verbs` are infinitives; short messages with one are indexed."""

    roles: frozenset[str] = INDEXED_ROLES
    min_chars: int = MIN_MESSAGE_CHARS
    max_tokens: int = MAX_CHUNK_TOKENS
    merge: bool = True
    task_verbs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TurnChunk:
    """The messages from `first_seq` to `last_seq`, or part number `part` of one long message."""

    first_seq: int
    last_seq: int
    part: int
    role: str
    author: str
    text: str
    at: datetime


@dataclass
class _Buffer:
    """The messages of the current turn."""

    messages: list[ChunkableMessage] = field(default_factory=list)
    tokens: int = 0

    def has_room(self, tokens: int, rules: ChunkingRules) -> bool:
        return rules.merge and bool(self.messages) and self.tokens + tokens + 1 <= rules.max_tokens

    def has_speaker_of(self, message: ChunkableMessage) -> bool:
        last = self.messages[-1]
        return (last.role, last.author) == (message.role, message.author)

    def flush(self) -> Iterator[TurnChunk]:
        if self.messages:
            first, last = self.messages[0], self.messages[-1]
            text = "\n".join(message.text.strip() for message in self.messages)
            yield TurnChunk(first.seq, last.seq, 0, first.role, first.author, text, first.at)
        self.messages, self.tokens = [], 0


def chunk_messages(
    messages: Iterable[ChunkableMessage], rules: ChunkingRules = ChunkingRules()
) -> Iterator[TurnChunk]:
    """Return the turns of a conversation, whose messages are in order.

    Messages of one role and author are merged as long as they fit. A message of another role ends
    a turn even if it is not indexed. Chunking that starts at the first message of any turn returns
    the same turns from there.
    """
    buffer = _Buffer()
    for message in messages:
        if buffer.messages and not buffer.has_speaker_of(message):
            yield from buffer.flush()
        if message.role not in rules.roles or not is_indexable(message.text, rules):
            continue
        tokens = token_counting.count(message.text.strip())
        if not buffer.has_room(tokens, rules):
            yield from buffer.flush()
        if tokens > rules.max_tokens:
            seq, role, author = message.seq, message.role, message.author
            for part, text in enumerate(split_text(message.text.strip(), rules.max_tokens)):
                yield TurnChunk(seq, seq, part, role, author, text, message.at)
        else:
            buffer.messages.append(message)
            buffer.tokens += tokens + 1
    yield from buffer.flush()


def is_indexable(text: str, rules: ChunkingRules = ChunkingRules()) -> bool:
    """Return whether a message is long enough, asks a question or mentions a task."""
    text = text.strip()
    if len(text) >= rules.min_chars:
        return True
    if not text:
        return False
    words = re.findall(r"[^\W\d_]+", text.lower())
    forms = inflections(rules.task_verbs)
    return bool(_QUESTION_MARK.search(text)) or any(word in forms for word in words)


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


@lru_cache(maxsize=8)
def inflections(verbs: frozenset[str]) -> frozenset[str]:
    """Return every form of English infinitives: decide, decides, decided, deciding."""
    return frozenset(form for verb in verbs for form in _forms(verb.lower()))


def _forms(verb: str) -> Iterator[str]:
    yield from (verb, *_IRREGULAR.get(verb, ()))
    stem = verb
    # The last consonant may double: ship, shipping; commit, committed.
    may_double = (
        len(verb) > 2
        and verb[-1] not in _VOWELS + "wxy"
        and verb[-2] in _VOWELS
        and verb[-3] not in _VOWELS
    )
    if verb.endswith("e"):
        stem = verb[:-1]
    elif verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied")
    elif may_double:
        yield from (f"{verb}{verb[-1]}ing", f"{verb}{verb[-1]}ed")
    yield from (f"{verb}s", f"{verb}es", f"{stem}ing", f"{verb}ing", f"{stem}ed")


_IRREGULAR: dict[str, Sequence[str]] = {
    "begin": ("began", "begun"),
    "break": ("broke", "broken"),
    "bring": ("brought",),
    "build": ("built",),
    "buy": ("bought",),
    "choose": ("chose", "chosen"),
    "do": ("did", "done"),
    "find": ("found",),
    "get": ("got", "gotten"),
    "give": ("gave", "given"),
    "keep": ("kept",),
    "make": ("made",),
    "meet": ("met",),
    "pay": ("paid",),
    "run": ("ran",),
    "send": ("sent",),
    "set": ("set",),
    "take": ("took", "taken"),
    "tell": ("told",),
    "write": ("wrote", "written"),
}
