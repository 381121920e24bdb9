"""Lines of memory that state a fact which another fact ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from django.utils import timezone

from memory.facts.grounding import is_grounded
from memory.layers.lines import Line
from memory.models import Fact
from projects.models import Project

# Facts that ended last. Each is compared with all lines.
MAX_ENDED = 50


@dataclass(frozen=True)
class EndedFact:
    """A former fact; it was valid until `until`, a day in the project's zone."""

    subject: str
    object: str
    until: date

    def is_stated_in(self, line: Line) -> bool:
        """Return whether a line of a day before `until` contains its object and its subject."""
        # The plain comparison first: it leaves few lines for the comparison by words.
        return (
            line.day <= self.until
            and self.object.casefold() in line.text.casefold()
            and is_grounded(self.subject, [line.text])
        )


def ended_facts(project: Project, now: datetime) -> list[EndedFact]:
    """Return the project's own facts that other facts ended, the last ended first."""
    rows = Fact.objects.filter(project=project, user=None).with_validity().ended_by(now)
    return [
        EndedFact(
            fact.subject,
            fact.object,
            timezone.localdate(fact.until, project.zone),  # type: ignore[attr-defined]
        )
        for fact in rows[:MAX_ENDED]
    ]


def mark_ended(lines: Iterable[Line], ended: Sequence[EndedFact]) -> list[Line]:
    """Return `lines`, of which those that state an ended fact have the day until which it held."""
    return [
        replace(line, until=min(days))
        if (days := [fact.until for fact in ended if fact.is_stated_in(line)])
        else line
        for line in lines
    ]
