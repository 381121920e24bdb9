"""Transcripts: split without loss into parts that fit into a model's context; word counts. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chat.prompt import quoting
from projects.core import token_counting

# A sentence ends at a full stop, question or exclamation mark with its closing quotes and brackets.
# In scripts that use spaces, a space must follow; in East Asian scripts it need not.
_SENTENCE_END = re.compile(r"(?<![.!?…؟।۔])[.!?…؟।۔]++[\"'”’»)\]]*+\s+|[。！？｡]+[」』”’）]*\s*")
_QUOTES = frozenset('"”’»“')
# No sentence ends at a full stop after these, a single letter or a small number ("14. April"). Max
# is a name.
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|incl|mr|mrs|ms|dr|prof|st|no|nr|fig|(?-i:max|min)|inkl"
    r"|evtl|ggf|vgl|mio|mrd|z\.B|d\.h|u\.a|bzw|p\.ej)"
    r"|\b[^\W\d_]|\b\d{1,2})\.\s+$",
    re.IGNORECASE,
)
# Scripts that write no spaces between words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# `shorten` cuts a text to this number of characters for each permitted word.
_MAX_CHARS_PER_WORD = 12
_CONTINUED = " (continued)"
# A text with more characters than this for each permitted token never fits. Its tokens are not
# counted, because counting a megabyte again for each part would take quadratic time.
_MAX_CHARS_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One message. `at` is in the project's time zone. `role` is user or assistant.

    `is_file` is true for a passage of a file. Mail in it is its content, not a quotation.
    """

    speaker: str
    text: str
    at: datetime
    role: str = "user"
    id: UUID | None = None
    is_file: bool = False

    @property
    def is_assistant(self) -> bool:
        return self.role == "assistant"


def split_lines(lines: Sequence[TranscriptLine], limit: int) -> list[list[tuple[int, str]]]:
    """Render lines and return them in parts of at most `limit` tokens.

    Each line is rendered as `[2026-11-21 14:05] Ana: text` and a newline. The text is quoted and
    put on one line, so that it cannot imitate another message. A part is a list of pairs (index of
    the line, rendered line or piece of it). A line that is too long is split at the ends of
    sentences, and a sentence that is too long is split between characters; all pieces except the
    first are marked as continued. Raises ValueError if `limit` leaves no room for text beside time
    and speaker.
    """
    parts: list[list[tuple[int, str]]] = []
    room = 0
    for place, line in enumerate(lines):
        for piece in _pieces(line, limit):
            # The sum is exact, because every piece starts with a bracket and ends in a newline.
            length = token_counting.count(piece)
            if length > room:
                parts.append([])
                room = limit
            parts[-1].append((place, piece))
            room -= length
    return parts


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of `text` with the space after them. Joined, they are the whole text."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if _ends(text, start, end):
            yield text[start : end.end()]
            start = end.end()
    if start < len(text):
        yield text[start:]


def count_words(text: str) -> int:
    """Count the words of `text`. Scripts without spaces count one word for two characters."""
    # Rounded up, so that a text never has more words than its parts in total.
    return len(text.split()) + (len(_UNSPACED.findall(text)) + 1) // 2


def shorten(text: str, max_words: int) -> str:
    """Cut the line `text` to at most `max_words` words, between words, and add an ellipsis."""
    # Also limit the characters, because a single word may have any length.
    cut = text[: max_words * _MAX_CHARS_PER_WORD]
    while count_words(cut) > max_words:
        head, space, _ = cut.rpartition(" ")
        cut = (
            head
            if space and count_words(head) >= max_words // 2
            else cut[: -max(len(cut) // 20, 1)]
        )
    return text if cut == text else f"{cut.rstrip(' ,;:.–-—')}…"


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    # "Can we?" asked Mia. The sentence goes on after a full stop or a quotation mark.
    goes_on = text[end.end() : end.end() + 1].islower()
    if goes_on and (end[0].startswith(".") or not _QUOTES.isdisjoint(end[0])):
        return False
    # All abbreviations are shorter than 12 characters.
    return not _ABBREVIATION.search(text[max(start, end.end() - 12) : end.end()])


def _prefix(line: TranscriptLine, mark: str = "") -> str:
    return f"[{line.at:%Y-%m-%d %H:%M}] {quoting.quote_on_one_line(line.speaker)}{mark}: "


def _pieces(line: TranscriptLine, limit: int) -> Iterator[str]:
    """Yield the rendered line, in as many pieces as `limit` requires."""
    prefix = _prefix(line)
    text = quoting.quote_on_one_line(line.text)
    if _fits(prefix, text, limit):
        yield f"{prefix}{text}\n"
        return
    buffer = ""
    for sentence in sentences(text):
        if buffer and not _fits(prefix, buffer + sentence, limit):
            yield f"{prefix}{buffer}\n"
            prefix, buffer = _prefix(line, _CONTINUED), ""
        buffer += sentence
        while not _fits(prefix, buffer, limit):
            head = _head(prefix, buffer, limit)
            yield f"{prefix}{head}\n"
            prefix, buffer = _prefix(line, _CONTINUED), buffer[len(head) :]
    if buffer:
        yield f"{prefix}{buffer}\n"


def _fits(prefix: str, text: str, limit: int) -> bool:
    return (
        len(text) <= limit * _MAX_CHARS_PER_TOKEN
        and token_counting.count(f"{prefix}{text}\n") <= limit
    )


def _head(prefix: str, text: str, limit: int) -> str:
    """Return as much of `text` as fits into a piece with `prefix`, if possible up to a space."""
    room = limit - token_counting.count(f"{prefix}\n")
    head = token_counting.truncate(text[: limit * _MAX_CHARS_PER_TOKEN], room)
    while head and not _fits(prefix, head, limit):
        room -= 1
        head = token_counting.truncate(head, room)
    if not head:
        raise ValueError(f"A part of {limit} tokens has no room for a line of a transcript.")
    spaced = head.rfind(" ") + 1
    return head[:spaced] if spaced > len(head) // 2 else head
