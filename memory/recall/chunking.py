"""Messages become turns: the excerpts that recall finds. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from chat import tokens

# Tokens of a chunk's text (cl100k_base).
MOST_TOKENS = 256
# Characters. A shorter message says too little by itself to be worth a place among the results.
MIN_CHARS = 20
ROLES = frozenset({"user", "assistant"})

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|\n+")
_ASKING = re.compile(r"[?？¿؟]")
_VOWELS = "aeiou"


class Said(Protocol):
    """A message as the chunker reads it; `author` tells people of one role apart."""

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
class Rules:
    """How messages are cut. `task_verbs` are infinitives; a short message with one is kept."""

    roles: frozenset[str] = ROLES
    min_chars: int = MIN_CHARS
    most_tokens: int = MOST_TOKENS
    merge: bool = True
    task_verbs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Turn:
    """One excerpt: the messages from `first_seq` to `last_seq`, or the given part of one."""

    first_seq: int
    last_seq: int
    part: int
    role: str
    author: str
    text: str
    at: datetime


@dataclass
class _Buffer:
    """What has been merged so far and may still grow."""

    messages: list[Said] = field(default_factory=list)
    tokens: int = 0

    def takes(self, message: Said, count: int, rules: Rules) -> bool:
        return rules.merge and bool(self.messages) and self.tokens + count + 1 <= rules.most_tokens

    def speaks_as(self, message: Said) -> bool:
        last = self.messages[-1]
        return (last.role, last.author) == (message.role, message.author)

    def flush(self) -> Iterator[Turn]:
        if self.messages:
            first, last = self.messages[0], self.messages[-1]
            text = "\n".join(message.text.strip() for message in self.messages)
            yield Turn(first.seq, last.seq, 0, first.role, first.author, text, first.at)
        self.messages, self.tokens = [], 0


def turns(messages: Iterable[Said], rules: Rules = Rules()) -> Iterator[Turn]:
    """The turns of one conversation, whose messages come in order.

    Messages of one role and author are merged as long as they fit; another role, a full buffer
    and the end flush. What is not indexed ends a turn; what says too little is left out. Started
    at the first message of any turn, the rest comes out the same.
    """
    buffer = _Buffer()
    for message in messages:
        if buffer.messages and not buffer.speaks_as(message):
            yield from buffer.flush()
        if message.role not in rules.roles or not worth_keeping(message.text, rules):
            continue
        count = tokens.count(message.text.strip())
        if not buffer.takes(message, count, rules):
            yield from buffer.flush()
        if count > rules.most_tokens:
            yield from _parts(message, rules.most_tokens)
        else:
            buffer.messages.append(message)
            buffer.tokens += count + 1
    yield from buffer.flush()


def worth_keeping(text: str, rules: Rules = Rules()) -> bool:
    """Whether a message is long enough, asks something or speaks of a task."""
    text = text.strip()
    if len(text) >= rules.min_chars:
        return True
    if not text:
        return False
    words = re.findall(r"[^\W\d_]+", text.lower())
    forms = inflections(rules.task_verbs)
    return bool(_ASKING.search(text)) or any(word in forms for word in words)


def _parts(message: Said, most: int) -> Iterator[Turn]:
    for number, text in enumerate(split(message.text.strip(), most)):
        seq = message.seq
        yield Turn(seq, seq, number, message.role, message.author, text, message.at)


def split(text: str, most: int) -> Iterator[str]:
    """`text` in pieces of at most `most` tokens that end where sentences do, if they can.

    Nothing but white space between the pieces is lost.
    """
    piece = ""
    for sentence in _sentences(text, most):
        longer = f"{piece} {sentence}" if piece else sentence
        if piece and tokens.count(longer) > most:
            yield piece
            piece = sentence
        else:
            piece = longer
    if piece:
        yield piece


def _sentences(text: str, most: int) -> Iterator[str]:
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end].strip()
        start = end
        while tokens.count(sentence) > most:
            piece = _cut(sentence, most)
            yield piece.strip()
            sentence = sentence[len(piece) :].strip()
        if sentence:
            yield sentence


def _cut(sentence: str, most: int) -> str:
    """The beginning of an endless sentence: up to a space if there is one in its second half."""
    piece = tokens.cut(sentence, most) or sentence[:1]
    space = piece.rfind(" ")
    return piece[:space] if space > len(piece) // 2 else piece


@lru_cache(maxsize=8)
def inflections(verbs: frozenset[str]) -> frozenset[str]:
    """Every form of English `verbs`, given as infinitives: decide, decides, decided, deciding."""
    return frozenset(form for verb in verbs for form in _forms(verb.lower()))


def _forms(verb: str) -> Iterator[str]:
    yield from (verb, *_IRREGULAR.get(verb, ()))
    stem = verb
    if verb.endswith("e"):
        stem = verb[:-1]
    elif verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied")
    elif _doubles(verb):
        yield from (f"{verb}{verb[-1]}ing", f"{verb}{verb[-1]}ed")
    yield from (f"{verb}s", f"{verb}es", f"{stem}ing", f"{verb}ing", f"{stem}ed")


def _doubles(verb: str) -> bool:
    """Whether the last consonant may double: ship, shipping; commit, committed."""
    return (
        len(verb) > 2
        and verb[-1] not in _VOWELS + "wxy"
        and verb[-2] in _VOWELS
        and verb[-3] not in _VOWELS
    )


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
