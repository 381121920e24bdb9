"""Lines: an entry is an ordered list of lines, the most important first. Pure.

The text of an entry (`Entry.summary`) is rendered from its lines, so that the API, the search and
older processes can read it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from uuid import UUID

# The mark of a list or of a heading at the start of a line.
_MARK = re.compile(r"^\s*(?:(?:[-*+•]|#{1,6})\s+)?")
# The text between the speaker and the quoted words, and the text after them.
_OPENING, _CLOSING = ": “", "”"
MAX_SPEAKER_CHARS = 60


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an entry, without the mark of a list.

    - `day`: the local day of its first source, in the zone of the entry.
    - `speaker`: the name in front of a quotation, "" for a line that a model or a person wrote.
    - `sources`: the ids of the messages that the line is based on. Without ids, any message of the
      entry may be its source.
    - `score`: the salience of a quotation, comparable within a project. For other lines, it is
      derived from the rank.
    - `until`: the day on which another fact replaced the one in this line. It is not stored.
    """

    text: str
    day: date
    speaker: str = ""
    sources: tuple[UUID, ...] = ()
    score: float = 0.0
    until: date | None = None

    @property
    def shown(self) -> str:
        """Return the words of the line, and the speaker if it is a quotation."""
        return f"{self.speaker}{_OPENING}{self.text}{_CLOSING}" if self.speaker else self.text


def to_json(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [
        {
            "text": line.text,
            "day": line.day.isoformat(),
            "speaker": line.speaker,
            "sources": [str(source) for source in line.sources],
            "score": round(line.score, 3),
        }
        for line in lines
    ]


def from_json(rows: Iterable[dict[str, Any]]) -> list[Line]:
    """Return the lines that `to_json` stored. Raises ValueError, TypeError, KeyError,
    AttributeError or OverflowError for others.
    """
    return [
        Line(
            text=str(row["text"]),
            day=date.fromisoformat(row["day"]),
            speaker=str(row["speaker"]),
            sources=tuple(map(UUID, row["sources"])),
            score=float(row["score"]),
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
    bullets = filter(None, (_MARK.sub("", row).strip() for row in text.splitlines()))
    return [
        Line(words, day, speaker, score=rank_score(place))
        for place, (speaker, words) in enumerate(map(_split_quotation, bullets))
    ]


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
    """Return `lines` with `mark` in place of every `passage`. `text` is their text after that."""
    new = [
        replace(
            line,
            text=line.text.replace(passage, mark),
            speaker=line.speaker.replace(passage, mark),
        )
        for line in lines
    ]
    # The passage may have begun in one line and ended in the next.
    return new if as_text(new) == text else edited(lines, text, day)
