"""Lines: an entry is an ordered list of lines, the most important first. Pure.

`roll_up` merges the lines of several entries into one list, without a model.

The text of an entry (`Entry.summary`) is rendered from its lines, so that the API, the search and
processes of an older version can read it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from chat.prompt import quoting

# The mark of a list or of a heading at the start of a line.
MARK = re.compile(r"^\s*(?:(?:[-*+•]|#{1,6})\s+)?")
# The text between the speaker and the quoted words, and the text after them.
_OPENING, _CLOSING = ": “", "”"
MAX_SPEAKER_CHARS = 60
# One line repeats another if both share this part of the shorter line's words.
REPEATED_SHARE = 0.7
# The maximum number of lines in a digest. A bank of 2,000 tokens has about 70 lines in total.
MAX_ROLLED_UP_LINES = 60
# The maximum number of characters that `content_words` reads.
MAX_WORDS_CHARS = 1_000

# Indic scripts write vowels as marks, which \w does not match.
_WORD = re.compile(r"[^\W_][\w\u0900-\u0963\u0966-\u0dff’'-]*")
_UNSPACED_RUN = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
# English, German, French and Spanish stop words.
_STOP_WORDS = frozenset(
    Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").split()
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an entry, without the mark of a list.

    - `day`: the local day of its first source, in the zone of the entry.
    - `speaker`: the name in front of a quotation, "" for a line that a model or a person wrote.
    - `sources`: the ids of the messages or file passages that the line is based on. Without ids,
      any message of the entry may be its source.
    - `score`: the salience of a quotation, comparable within a project. For other lines, it is
      derived from the rank.
    - `place`: the position of a quotation in its conversation. It is 0 for other lines.
    - `until`: the day on which a newer fact replaced that of this line. It is not stored.
    """

    text: str
    day: date
    speaker: str = ""
    sources: tuple[UUID, ...] = ()
    score: float = 0.0
    until: date | None = None
    place: int = 0

    @property
    def shown(self) -> str:
        """Return the words of the line, and the speaker if it is a quotation."""
        return f"{self.speaker}{_OPENING}{self.text}{_CLOSING}" if self.speaker else self.text

    @property
    def quoted(self) -> str:
        """Return `shown` for a prompt: on one line, and the words cannot end the quotation."""
        return _quote_line(self.speaker, self.text)


def to_json(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [
        {
            "text": line.text,
            "day": line.day.isoformat(),
            "speaker": line.speaker,
            "sources": [str(source) for source in line.sources],
            "score": round(line.score, 3),
            "place": line.place,
        }
        for line in lines
    ]


def from_json(rows: Iterable[dict[str, Any]]) -> list[Line]:
    """Return the lines that `to_json` stored. Raises ValueError, TypeError, KeyError,
    AttributeError or OverflowError for rows in another form.
    """
    return [
        Line(
            text=str(row["text"]),
            day=date.fromisoformat(row["day"]),
            speaker=str(row["speaker"]),
            sources=tuple(map(UUID, row["sources"])),
            score=float(row["score"]),
            # Rows of earlier versions have no place.
            place=int(row.get("place", 0)),
        )
        for row in rows
    ]


def read(rows: Sequence[dict[str, Any]], text: str, day: date) -> list[Line]:
    """Return the stored lines of a text, or those of `from_text` if it has none."""
    return from_json(rows) or from_text(text, day)


def as_text(lines: Iterable[Line]) -> str:
    """Return the text of an entry with these lines: one bullet for each line."""
    return "\n".join(f"- {line.shown}" for line in lines)


def from_text(text: str, day: date) -> list[Line]:
    """Return the bullets of a text without stored lines, as lines of `day` without sources.

    The scores are derived from the ranks. Empty lines are left out.
    """
    bullets = filter(None, (MARK.sub("", row).strip() for row in text.splitlines()))
    return [
        Line(words, day, speaker, score=rank_score(place))
        for place, (speaker, words) in enumerate(map(_split_quotation, bullets))
    ]


def quote_text(text: str) -> str:
    """Return the text of an entry for a prompt. Its quotations are quoted as in `Line.quoted`."""
    rows = map(_split_quotation, quoting.quote(text).splitlines())
    return "\n".join(_quote_line(speaker, words) for speaker, words in rows)


def _quote_line(speaker: str, words: str) -> str:
    if not speaker:
        return quoting.quote_on_one_line(words)
    speaker, words = quoting.quote_words(speaker), quoting.quote_words(words)
    return f"{speaker}{_OPENING}{words}{_CLOSING}"


def _split_quotation(bullet: str) -> tuple[str, str]:
    """Return the speaker and the words of a quotation; ("", `bullet`) for another bullet."""
    speaker, opening, words = bullet.partition(_OPENING)
    if not (opening and words.endswith(_CLOSING) and 0 < len(speaker) <= MAX_SPEAKER_CHARS):
        return "", bullet
    return speaker, words.removesuffix(_CLOSING)


def rank_score(place: int) -> float:
    """Return the score of the line at index `place` in a list whose lines have no scores.

    The first line counts as much as a good quotation, later lines less.
    """
    return 3.0 / (1 + 0.25 * place)


def edited(lines: Sequence[Line], text: str, day: date) -> list[Line]:
    """Return the lines of `text`, an edited version of `lines`.

    A line that is unchanged keeps its sources.
    """
    known = {line.shown: line for line in lines}
    return [known.get(line.shown, line) for line in from_text(text, day)]


def replaced(lines: Sequence[Line], passage: str, mark: str, text: str, day: date) -> list[Line]:
    """Return `lines` with `mark` in place of every `passage`. The text of the result is `text`."""
    new = [
        replace(
            line, text=line.text.replace(passage, mark), speaker=line.speaker.replace(passage, mark)
        )
        for line in lines
    ]
    # The passage may have begun in one line and ended in the next.
    return new if as_text(new) == text else edited(lines, text, day)


def content_words(text: str) -> frozenset[str]:
    """Return the case-folded content words of `text`. For scripts without spaces, return the pairs
    of adjacent characters.
    """
    words: set[str] = set()
    for word in _WORD.findall(text[:MAX_WORDS_CHARS].casefold()):
        runs = _UNSPACED_RUN.findall(word)
        for run in runs:
            words.update(run[start : start + 2] for start in range(max(len(run) - 1, 1)))
        if not runs and (len(word) > 1 or word.isdigit()):
            words.add(word)
    return frozenset(words) - _STOP_WORDS


class LineIndex:
    """The lines taken so far, indexed by word to find lines that repeat them."""

    def __init__(self) -> None:
        # Cached, because a line is compared several times before it is taken.
        self._words = cache(content_words)
        self._lines: list[frozenset[str]] = []
        self._lines_with: defaultdict[str, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: Line) -> None:
        words = self._words(line.text)
        for word in words:
            self._lines_with[word].append(len(self._lines))
        self._lines.append(words)

    def repeats(self, line: Line) -> bool:
        """Return whether `line` repeats an earlier line: both share REPEATED_SHARE of the words of
        the shorter line, and the earlier line has all words of `line` that contain a digit.
        """
        words = self._words(line.text)
        shared = Counter(place for word in words for place in self._lines_with.get(word, ()))
        return any(
            count >= REPEATED_SHARE * min(len(words), len(self._lines[place]))
            and not any(_DIGIT.search(word) for word in words - self._lines[place])
            for place, count in shared.items()
        )


def roll_up(lists: Iterable[Sequence[Line]], limit: int = MAX_ROLLED_UP_LINES) -> list[Line]:
    """Return the first `limit` lines of `roll_up_lazily`."""
    return list(islice(roll_up_lazily(lists), limit))


def roll_up_lazily(lists: Iterable[Sequence[Line]]) -> Iterator[Line]:
    """Merge `lists`, such as the lines of several conversations, with the most important lines
    first.

    In each round, every list contributes its next line. Within a round, lines with higher scores
    come first, then earlier lines. In the first round, the best line of each week comes first. A
    line that repeats a yielded line is left out.
    """
    taken = LineIndex()
    rests = [iter(lines) for lines in lists]
    while rests:
        candidates = []
        for rest in list(rests):
            line = next((line for line in rest if not taken.repeats(line)), None)
            if line is None:
                rests.remove(rest)
            else:
                candidates.append(line)
        candidates.sort(key=lambda line: (-line.score, line.day))
        if not len(taken):
            candidates = _weeks_first(candidates)
        for line in candidates:
            # Lines of the same round may repeat each other.
            if not taken.repeats(line):
                taken.add(line)
                yield line


def _weeks_first(lines: Sequence[Line]) -> list[Line]:
    """Move the first line of each week to the front."""
    first: dict[tuple[int, int], Line] = {}
    others = []
    for line in lines:
        week = line.day.isocalendar()[:2]
        if week in first:
            others.append(line)
        else:
            first[week] = line
    return [*first.values(), *others]
