"""Lines of memory that state a fact which another fact ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from memory.facts.grounding import is_grounded
from memory.layers.lines import Line
from memory.models import Fact
from projects.models import Project

# Facts that ended last. Each is compared with all lines.
MAX_ENDED = 50


@dataclass(frozen=True)
class EndedFact:
    """A former fact; `new_object` replaced `object` on `until`, a day in the project's zone."""

    subject: str
    object: str
    new_object: str
    until: date

    def is_stated_in(self, line: Line) -> bool:
        """Return whether a line of a day before `until` contains its object and its subject.

        A line that contains the new object too reports the change, and stays true.
        """
        text = line.text.casefold()
        # The plain comparisons first: they leave few lines for the comparison by words.
        return (
            line.day <= self.until
            and self.object.casefold() in text
            and self.new_object.casefold() not in text
            and is_grounded(self.subject, [line.text])
        )


def ended_facts(project: Project, now: datetime) -> list[EndedFact]:
    """Return the project's own facts that other facts ended, the last ended first."""
    newer = Fact.objects.filter(project=project, pk=OuterRef("closer")).values("object")
    rows = (
        Fact.objects.filter(project=project, user=None)
        .with_validity()
        .ended_by(now)
        .annotate(new_object=Subquery(newer))
        .values_list("subject", "object", "new_object", "until")
    )
    return [
        EndedFact(subject, old, new, timezone.localdate(until, project.zone))
        for subject, old, new, until in rows[:MAX_ENDED]
    ]


def mark_ended(lines: Iterable[Line], ended: Sequence[EndedFact]) -> list[Line]:
    """Return `lines`, of which those that state an ended fact have the day until which it held."""
    return [
        replace(line, until=min(days))
        if (days := [fact.until for fact in ended if fact.is_stated_in(line)])
        else line
        for line in lines
    ]
