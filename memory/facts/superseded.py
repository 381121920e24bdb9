"""Lines of memory that state a fact which another fact ended."""

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

# Facts that ended last. Each is compared with all lines.
MAX_ENDED = 50


@dataclass(frozen=True)
class EndedFact:
    """A former fact; `new_object` replaced `object` on `until`, a day in the project's zone.

    Both objects are case-folded.
    """

    subject: str
    object: str
    new_object: str
    until: date

    def is_stated_in(self, text: str, day: date) -> bool:
        """Return whether the case-folded `text` of a `day` before `until` contains the object and
        the subject.

        A text that contains the new object too reports the change, and stays true.
        """
        # The plain comparisons first: they leave few lines for the comparison by words.
        return (
            day <= self.until
            and self.object in text
            and self.new_object not in text
            and is_grounded(self.subject, [text])
        )


def ended_facts(project: Project, moment: datetime | None = None) -> list[EndedFact]:
    """Return the project's own facts that other facts ended by now, the last ended first; with
    `moment`, those that had ended then, as they were recorded then.
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
    """Return `lines`, of which those that state an ended fact have the day until which it held."""
    marked = []
    for line in lines:
        text = line.text.casefold()
        days = [fact.until for fact in ended if fact.is_stated_in(text, line.day)]
        marked.append(replace(line, until=min(days)) if days else line)
    return marked
