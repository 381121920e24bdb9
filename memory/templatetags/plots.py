"""`{% bars weeks "messages" … %}`: numbers by week, as a drawing and as a table;
`{% validity fact facts %}`: when a fact is so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

from memory.glance import Week
from memory.models import Fact

register = template.Library()

# Of the drawing; its page scales it.
HEIGHT, STEP, GAP = 60.0, 12.0, 2.0


@dataclass(frozen=True)
class Bar:
    week: Week
    value: int
    x: float
    height: float

    @property
    def y(self) -> float:
        return HEIGHT - self.height


@register.inclusion_tag("memory/_bars.html")
def bars(weeks: Sequence[Week], of: str, label: Any, layer: str) -> dict[str, object]:
    """`of` is the number that is drawn, a field of Week; `layer` names the colour."""
    values = [getattr(week, of) for week in weeks]
    most = max([*values, 1])
    drawn = [
        Bar(week, value, round(number * STEP, 1), round(HEIGHT * value / most, 1))
        for number, (week, value) in enumerate(zip(weeks, values, strict=True))
    ]
    return {
        "bars": drawn,
        "label": label,
        "layer": layer,
        "total": sum(values),
        "width": f"{max(len(drawn), 13) * STEP:.0f}",
        "height": f"{HEIGHT:.0f}",
        "bar": f"{STEP - GAP:.0f}",
    }


@register.inclusion_tag("memory/_validity.html")
def validity(fact: Fact, facts: Sequence[Fact]) -> dict[str, object]:
    """When `fact` is so, as a stretch of the time in which the first of `facts` began until now."""
    now = timezone.now()
    begun = min(one.valid_from for one in facts)
    whole = max((now - begun).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        """In percent of the whole."""
        return 100 * min(max((moment - begun).total_seconds() / whole, 0.0), 1.0)

    until = getattr(fact, "until", None) or fact.valid_until
    start, end = place(fact.valid_from), place(until or now)
    return {
        "start": f"{min(start, 99):.1f}",
        "width": f"{max(end - start, 1):.1f}",
        "goes_on": until is None,
    }
