"""Chunking: group messages into turns, the units of the search index. Pure."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from chat.models import Message
from projects.core import token_counting
from projects.models.projects import DEFAULT_MIN_INDEX_CHARS, IndexedRole

# The maximum length of a chunk's text in tokens (cl100k_base).
MAX_CHUNK_TOKENS = 128
# A turn has the time of its first message. A message that was written later than this after it, or
# before it, begins another turn.
MAX_TURN_SPAN = timedelta(hours=12)
# The number of characters per token that are encoded at first to find the end of a part.
WINDOW_CHARS_PER_TOKEN = 8
# The roles whose messages a project can index.
INDEXED_ROLES = frozenset(IndexedRole.values)
# Task verbs by language. The comments in task_words.toml explain them.
_TASK_WORDS: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("task_words.toml").read_text(encoding="utf-8")
)

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|\n+")
_QUESTION_MARK = re.compile(r"[?？¿؟]")
# ASCII punctuation and digits, and common punctuation marks of other scripts.
_WORD_END = re.compile(r"[\s!-@\[-`{-~…–—“”„‘’«»‹›、。！？،؛؟।]+")


@dataclass(frozen=True)
class TaskWords:
    """Verbs that describe tasks, in the form of `fold_word`: whole words and word beginnings."""

    words: frozenset[str]
    beginnings: tuple[str, ...]

    def occur_in(self, text: str) -> bool:
        words = _WORD_END.split(fold_word(text))
        return any(word in self.words or word.startswith(self.beginnings) for word in words)


def fold_word(text: str) -> str:
    """Return `text` in lower case and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@cache
def task_words(language: str) -> TaskWords:
    """Return the task verbs of a search language and of English. For `simple`, all languages."""
    names = [language, "english"] if language in _TASK_WORDS else list(_TASK_WORDS)
    listed = [fold_word(word) for name in names for word in _TASK_WORDS[name].split()]
    return TaskWords(
        frozenset(word for word in listed if not word.endswith("*")),
        tuple(word.removesuffix("*") for word in listed if word.endswith("*")),
    )


@dataclass(frozen=True)
class ChunkingRules:
    """Rules for the messages of a session. A message shorter than `min_chars` is not indexed,
    because it has too little content, unless it contains a question or a task word of `language`.
    """

    min_chars: int = DEFAULT_MIN_INDEX_CHARS
    roles: frozenset[str] = INDEXED_ROLES
    language: str = "english"
    max_tokens: int = MAX_CHUNK_TOKENS
    merge: bool = True


@dataclass(frozen=True)
class TurnChunk:
    """The messages `first_seq` to `last_seq`, or the part number `part` of one long message."""

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
    """The messages of the turn that is being built."""

    messages: list[Message] = field(default_factory=list)
    tokens: int = 0

    def has_room(self, message: Message, tokens: int, rules: ChunkingRules) -> bool:
        if not (rules.merge and self.messages):
            return False
        span = abs(message.created_at - self.messages[0].created_at)
        return span <= MAX_TURN_SPAN and self.tokens + tokens + 1 <= rules.max_tokens

    def has_speaker_of(self, message: Message) -> bool:
        last = self.messages[-1]
        # The author of a chunk decides who may quote it, so two accounts never share one.
        known = (last.role, last.author_id, last.speaker)
        return known == (message.role, message.author_id, message.speaker)

    def flush(self) -> Iterator[TurnChunk]:
        if self.messages:
            text = "\n".join(message.text.strip() for message in self.messages)
            yield TurnChunk.of(self.messages[0], self.messages[-1], text)
        self.messages, self.tokens = [], 0


def chunk_messages(
    messages: Iterable[Message], rules: ChunkingRules = ChunkingRules()
) -> Iterator[TurnChunk]:
    """Yield the turns of a conversation. `messages` must be in order.

    Consecutive messages of one role and speaker are merged while they fit into a chunk and were
    written within MAX_TURN_SPAN. A message of another role ends the turn, even if that role is not
    indexed. If chunking starts at the first message of a turn, it returns the same turns from there
    on.
    """
    buffer = _Buffer()
    for message in messages:
        if buffer.messages and not buffer.has_speaker_of(message):
            yield from buffer.flush()
        if message.role not in rules.roles or not is_indexable(message.text, rules):
            continue
        tokens = token_counting.count(message.text.strip())
        if not buffer.has_room(message, tokens, rules):
            yield from buffer.flush()
        if tokens > rules.max_tokens:
            for part, text in enumerate(split_text(message.text.strip(), rules.max_tokens)):
                yield TurnChunk.of(message, message, text, part)
        else:
            buffer.messages.append(message)
            buffer.tokens += tokens + 1
    yield from buffer.flush()


def is_indexable(text: str, rules: ChunkingRules = ChunkingRules()) -> bool:
    """Return whether a message is long enough, contains a question or mentions a task."""
    text = text.strip()
    if len(text) >= rules.min_chars:
        return True
    return bool(_QUESTION_MARK.search(text)) or task_words(rules.language).occur_in(text)


def split_text(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` into parts of at most `max_tokens` tokens, at the end of sentences if possible.

    Nothing is lost except white space between the parts.
    """
    part, tokens = "", 0
    for sentence in _sentences(text, max_tokens):
        # A space after another character begins a token, so the counts add up.
        added = token_counting.count(f" {sentence}")
        if part and tokens + added <= max_tokens:
            part += f" {sentence}"
            tokens += added
            continue
        if part:
            yield part
        part, tokens = sentence, token_counting.count(sentence)
    if part:
        yield part


def _sentences(text: str, max_tokens: int) -> Iterator[str]:
    """Yield the sentences of `text`. A sentence that is too long is cut at spaces."""
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        sentence = text[start:end].strip()
        start = end
        while len(head := _beginning(sentence, max_tokens)) < len(sentence):
            space = head.rfind(" ")
            # Do not cut at a space in the first half, because the part would be too short.
            head = head[:space] if space > len(head) // 2 else head
            yield head.strip()
            sentence = sentence[len(head) :].strip()
        if sentence:
            yield sentence


def _beginning(sentence: str, max_tokens: int) -> str:
    """Return the beginning of `sentence` with at most `max_tokens` tokens; at least one character.

    Not all of the sentence is encoded. Otherwise, a text of 500,000 characters without the end of a
    sentence would take minutes, and a worker would lose its lease each time.
    """
    # A token has at least one byte.
    if len(sentence[: max_tokens + 1].encode()) <= max_tokens:
        return sentence
    size = WINDOW_CHARS_PER_TOKEN * max_tokens
    while True:
        head = token_counting.truncate(sentence[:size], max_tokens) or sentence[:1]
        if len(head) < size or size >= len(sentence):
            return head
        size *= 2
