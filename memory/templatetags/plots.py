"""`{% bars weeks "messages" %}`: numbers by week as a small drawing, and as a table beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import template

from memory.glance import Week

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
