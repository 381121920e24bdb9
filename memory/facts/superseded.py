"""Find and mark lines of memory that state a fact which is no longer valid."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from memory.facts.grounding import is_grounded
from memory.layers.lines import Line
from memory.models import Fact
from projects.core.database import PreparedQuery
from projects.models import Project

# The maximum number of ended facts, the last ended first. Each is compared with all lines.
MAX_ENDED = 50
# A letter or digit of a script with spaces.
_LETTER = r"[^\W\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
# A position that is not within a word or a number, such as 12:00.
_EDGE = re.compile(rf"(?!(?<={_LETTER}){_LETTER}|(?<=\d[.,:])\d|(?<=\d)[.,:]\d)")


@dataclass(frozen=True)
class EndedFact:
    """A fact that has ended: `new_object` replaced `object` on `until`, a day in the project's
    zone.

    Both objects are case-folded.
    """

    subject: str
    object: str
    new_object: str
    until: date

    def is_stated_in(self, text: str, day: date) -> bool:
        """Return whether the text of a line states this fact. The text must be case-folded.

        `day` is the day of the line, which must not be after `until`. A text that also contains the
        new object reports the change, and remains true.
        """
        # The cheap comparisons come first, so that few lines reach the comparison by words.
        return (
            day <= self.until
            and _contains(text, self.object)
            and not _contains(text, self.new_object)
            and is_grounded(self.subject, [text])
        )


def _contains(text: str, words: str) -> bool:
    """Return whether `words` occur in `text` as whole words."""
    start = text.find(words)
    while start >= 0:
        if _EDGE.match(text, start) and _EDGE.match(text, start + len(words)):
            return True
        start = text.find(words, start + 1)
    return False


def ended_facts(project: Project, moment: datetime | None = None) -> list[EndedFact]:
    """Return the project's own facts that were ended by a later fact, the last ended first. With
    `moment`, return the facts that had ended then, as they were recorded then.
    """
    rows = _ended_rows(project.pk, moment) if moment else _current_rows(project.pk, timezone.now())
    return [
        EndedFact(subject, old.casefold(), new.casefold(), timezone.localdate(until, project.zone))
        for subject, old, new, until in rows
    ]


def _ended_rows(project: UUID, moment: datetime, *, recorded_now: bool = False) -> QuerySet:
    newer = Fact.objects.filter(project=project, pk=OuterRef("closer")).values("object")
    return (
        Fact.objects.filter(project=project, user=None)
        .with_validity(None if recorded_now else moment)
        .ended_by(moment)
        .annotate(new_object=Subquery(newer))
        .values_list("subject", "object", "new_object", "until")[:MAX_ENDED]
    )


_current_rows = PreparedQuery(partial(_ended_rows, recorded_now=True), UUID, datetime)


def mark_ended(lines: Iterable[Line], ended: Sequence[EndedFact]) -> list[Line]:
    """Return `lines`. A line that states an ended fact gets the day on which the fact ended."""
    marked = []
    for line in lines:
        text = line.text.casefold()
        days = [fact.until for fact in ended if fact.is_stated_in(text, line.day)]
        marked.append(replace(line, until=min(days)) if days else line)
    return marked
