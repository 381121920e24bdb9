"""Lines: an entry is an ordered list of lines, the most important first. Pure.

The text of an entry (`Entry.summary`) is rendered from its lines, so that the API, the search and
older processes can read it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

# A rendered quotation: speaker and words. A speaker's name is cut at 60 characters.
_QUOTATION = re.compile(r"(?P<speaker>[^“”\n]{1,80}): “(?P<text>[^\n]*)”", re.DOTALL)
# The mark of a list at the start of a line.
_MARK = re.compile(r"^\s*(?:[-*+•]\s+)?")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an entry, without the mark of a list.

    `day` is the local day of its first source, in the zone of the entry. `speaker` is the name in
    front of a quotation, "" for a line that a model or a person wrote. `sources` are the ids of the
    messages that the line rests on; without them, it rests on the entry as a whole. `score` is the
    salience of a quotation, which is comparable within a project, or is derived from the rank.
    """

    text: str
    day: date
    speaker: str = ""
    sources: tuple[UUID, ...] = ()
    score: float = 0.0

    @property
    def shown(self) -> str:
        """Return the words of the line, and the speaker if it is a quotation."""
        return f"{self.speaker}: “{self.text}”" if self.speaker else self.text


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
    """Return the lines that `to_json` stored."""
    return [
        Line(
            text=row["text"],
            day=date.fromisoformat(row["day"]),
            speaker=row["speaker"],
            sources=tuple(map(UUID, row["sources"])),
            score=row["score"],
        )
        for row in rows
    ]


def as_text(lines: Iterable[Line]) -> str:
    """Return the text of an entry with these lines: one bullet for each line."""
    return "\n".join(f"- {line.shown}" for line in lines)


def from_text(text: str, day: date) -> list[Line]:
    """Return the bullets of a text without stored lines, as lines of `day` without sources.

    The scores are derived from the ranks. Empty lines are left out.
    """
    bullets = [bullet for row in text.splitlines() if (bullet := _MARK.sub("", row).strip())]
    found = [(_QUOTATION.fullmatch(bullet), bullet) for bullet in bullets]
    return [
        Line(
            text=quotation["text"] if quotation else bullet,
            day=day,
            speaker=quotation["speaker"] if quotation else "",
            score=rank_score(place),
        )
        for place, (quotation, bullet) in enumerate(found)
    ]


def rank_score(place: int) -> float:
    """Return the score of the line at `place`, from 0, in a list without scores of its own.

    The first line counts as much as a good quotation, later lines less.
    """
    return 3.0 / (1 + 0.25 * place)


def stored_or_split(rows: Sequence[dict[str, Any]], text: str, day: date) -> list[Line]:
    """Return the stored lines of an entry, or the bullets of its `text` if they are not its lines.

    An older process, or an entry from before there were lines, has a text only.
    """
    lines = from_json(rows)
    return lines if as_text(lines) == text else from_text(text, day)
