"""The facts of a project over time, by subject."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from memory.models import Fact

# The maximum number of subjects. Those with the most changes are shown.
MAX_SUBJECTS = 20
MIN_PERCENT = 1.0
# The maximum width of a bar that is too short for its text.
SHORT_PERCENT = 15.0
# Narrow windows first show the chart from here to today.
NEWEST_FROM_PERCENT = 50.0


class FactPeriod(NamedTuple):
    """The period in which a fact is valid. `x` and `width` are in percent of the chart's width."""

    fact: Fact
    until: datetime | None
    x: str
    width: str
    # True if the bar is too short for its text. The text then ends where the bar ends.
    is_short: bool
    # Where the text begins in a narrow window, in percent of the bar's width; empty for the start.
    newest_x: str


@dataclass(frozen=True)
class SubjectTimeline:
    """The facts about one subject, with one line for each predicate, oldest first."""

    subject: str
    lines: Sequence[tuple[str, Sequence[FactPeriod]]]


@dataclass(frozen=True)
class FactsOverTime:
    first: datetime
    subjects: Sequence[SubjectTimeline]
    # The number of subjects that are not shown.
    more: int


def facts_over_time(facts: Iterable[Fact]) -> FactsOverTime | None:
    """Return a chart of `facts`, rows of `FactQuerySet.with_validity`; None without facts."""
    by_subject: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_subject[fact.subject].append(fact)
    if not by_subject:
        return None
    now = timezone.now()
    first = min(fact.valid_from for rows in by_subject.values() for fact in rows)
    span = max((now - first).total_seconds(), 1.0)

    def percent(moment: datetime) -> float:
        return 100 * min(max((moment - first).total_seconds() / span, 0.0), 1.0)

    def period(fact: Fact) -> FactPeriod:
        until = getattr(fact, "until", None)
        start = min(percent(fact.valid_from), 100 - MIN_PERCENT)
        width = max(percent(until or now) - start, MIN_PERCENT)
        is_short = until is None and width < SHORT_PERCENT and start > 50
        newest_x = ""
        if start < NEWEST_FROM_PERCENT <= start + width - SHORT_PERCENT:
            newest_x = f"{100 * (NEWEST_FROM_PERCENT - start) / width:.2f}"
        return FactPeriod(fact, until, f"{start:.2f}", f"{width:.2f}", is_short, newest_x)

    def timeline(subject: str) -> SubjectTimeline:
        lines: dict[str, list[FactPeriod]] = defaultdict(list)
        for fact in sorted(by_subject[subject], key=lambda fact: (fact.valid_from, fact.pk)):
            lines[fact.predicate].append(period(fact))
        return SubjectTimeline(subject, list(lines.items()))

    ordered = sorted(by_subject, key=lambda subject: (-len(by_subject[subject]), subject))
    shown = [timeline(subject) for subject in ordered[:MAX_SUBJECTS]]
    return FactsOverTime(first, shown, len(ordered) - len(shown))
