"""A transcript in parts that a model can read one at a time; nothing of it is lost. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from chat import tokens
from memory import fence

# A sentence ends at a full stop, question or exclamation mark and what closes after it: before a
# space in scripts that have spaces, anywhere in those of East Asia.
_SENTENCE_END = re.compile(r"(?<![.!?…؟।])[.!?…؟।]++[\"'”’»)\]]*+\s+|[。！？｡]+[」』”’）]*\s*")
# A full stop after one of these, a single letter or a small number ("14. April") ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|incl|mr|mrs|ms|dr|prof|st|no|nr|fig|z\.B|bzw|p\.ej)"
    r"|\b[^\W\d_]|\b\d{1,2})\.\s+$",
    re.IGNORECASE,
)
# Scripts that write no spaces between words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# Characters a word, on average, before a text counts as too long for its number of words.
_LONGEST_WORD = 12
_CONTINUED = " (continued)"
# Characters a token. A text with more is taken for too long without being counted, since counting
# what is left of a megabyte again for each part takes time that grows with its square.
_MOST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Line:
    """One message: `at` in the zone in which it is to be shown, `role` user or assistant."""

    speaker: str
    text: str
    at: datetime
    role: str = "user"

    @property
    def is_assistant(self) -> bool:
        return self.role == "assistant"


def render(line: Line) -> str:
    """`[2026-11-21 14:05] Ana: text`, quoted for a fence and on one line, so that nothing in a
    message can pass for another message.
    """
    return _prefix(line) + _flat(line.text)


def split(lines: Sequence[Line], limit: int) -> list[str]:
    """The rendered lines, each ended by a newline, in parts of at most `limit` tokens.

    A line longer than that is split at the ends of sentences, a sentence longer than that between
    characters; what follows is marked as continued. Raises ValueError for a limit with no room for
    any text beside a line's time and speaker.
    """
    return ["".join(piece for _, piece in part) for part in placed(lines, limit)]


def placed(lines: Sequence[Line], limit: int) -> list[list[tuple[int, str]]]:
    """As `split`, each part as pieces with the place, from 0, of the line that each is of."""
    parts: list[list[tuple[int, str]]] = []
    room = 0
    for place, line in enumerate(lines):
        for piece in _pieces(line, limit):
            # Exact, since every piece ends in a newline and starts with a bracket.
            length = tokens.count(piece)
            if length > room:
                parts.append([])
                room = limit
            parts[-1].append((place, piece))
            room -= length
    return parts


def split_texts(texts: Sequence[str], limit: int) -> list[list[str]]:
    """Texts in groups of at most `limit` tokens, in order.

    No group but the last has fewer than two, be they over the limit, so that merging groups into
    one text each always comes to an end.
    """
    groups: list[list[str]] = []
    room = 0
    for text in texts:
        length = tokens.count(text)
        if not groups or (length > room and len(groups[-1]) > 1):
            groups.append([])
            room = limit
        groups[-1].append(text)
        room -= length
    return groups


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, each with the space behind it: together they are the text."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if _ends(text, start, end):
            yield text[start : end.end()]
            start = end.end()
    if start < len(text):
        yield text[start:]


def words(text: str) -> int:
    """How many words `text` has: runs between spaces; two characters each in unspaced scripts."""
    # Rounded up, so that a text never has more words than its parts together.
    return len(text.split()) + (len(_UNSPACED.findall(text)) + 1) // 2


def shortened(text: str, most: int) -> str:
    """The line `text` in at most `most` words, cut between words and marked with an ellipsis."""
    # A "word" may be of any length, and a summary is not the place for the longest.
    cut = text[: most * _LONGEST_WORD]
    while words(cut) > most:
        head, space, _ = cut.rpartition(" ")
        cut = head if space and words(head) >= most // 2 else cut[: -max(len(cut) // 20, 1)]
    return text if cut == text else f"{cut.rstrip(' ,;:.–-—')}…"


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    if end[0].startswith(".") and text[end.end() : end.end() + 1].islower():
        return False
    # The longest abbreviation is shorter than this; looking further back costs time for nothing.
    return not _ABBREVIATION.search(text[max(start, end.end() - 12) : end.end()])


def _prefix(line: Line, mark: str = "") -> str:
    return f"[{line.at:%Y-%m-%d %H:%M}] {_flat(line.speaker)}{mark}: "


def _flat(text: str) -> str:
    return " ".join(fence.quote(text).split())


def _pieces(line: Line, limit: int) -> Iterator[str]:
    """The rendered line, in as many pieces as `limit` demands."""
    prefix = _prefix(line)
    text = _flat(line.text)
    if _fits(prefix, text, limit):
        yield f"{prefix}{text}\n"
        return
    held = ""
    for sentence in sentences(text):
        if held and not _fits(prefix, held + sentence, limit):
            yield f"{prefix}{held}\n"
            prefix, held = _prefix(line, _CONTINUED), ""
        held += sentence
        while not _fits(prefix, held, limit):
            head = _head(prefix, held, limit)
            yield f"{prefix}{head}\n"
            prefix, held = _prefix(line, _CONTINUED), held[len(head) :]
    if held:
        yield f"{prefix}{held}\n"


def _fits(prefix: str, text: str, limit: int) -> bool:
    return len(text) <= limit * _MOST_CHARACTERS and tokens.count(f"{prefix}{text}\n") <= limit


def _head(prefix: str, text: str, limit: int) -> str:
    """As much of `text` as makes a piece with `prefix`, cut after a space where there is one."""
    room = limit - tokens.count(f"{prefix}\n")
    head = tokens.cut(text[: limit * _MOST_CHARACTERS], room)
    while head and not _fits(prefix, head, limit):
        room -= 1
        head = tokens.cut(head, room)
    if not head:
        raise ValueError(f"A part of {limit} tokens has no room for a line of a transcript.")
    spaced = head.rfind(" ") + 1
    return head[:spaced] if spaced > len(head) // 2 else head
