"""Charts as SVG: bars for each week, and the period in which a fact is valid."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

from memory.layers.statistics import WeekStatistics
from memory.models import Fact

register = template.Library()

# Sizes in units of the SVG view box, which pages scale.
CHART_HEIGHT, BAR_STEP, BAR_GAP = 60.0, 12.0, 2.0


@register.inclusion_tag("memory/_weekly_chart.html")
def weekly_chart(weeks: Sequence[WeekStatistics], label: Any, layer: str) -> dict[str, object]:
    """Draw the number of messages of each week, with a table. `layer` selects the colour."""
    values = [week.messages for week in weeks]
    highest = max([*values, 1])
    heights = [round(CHART_HEIGHT * value / highest, 1) for value in values]
    return {
        "bars": [
            {
                "week": week,
                "value": value,
                "x": f"{number * BAR_STEP:.1f}",
                "y": f"{CHART_HEIGHT - height:.1f}",
                "height": f"{height:.1f}",
            }
            for number, (week, value, height) in enumerate(zip(weeks, values, heights, strict=True))
        ],
        "label": label,
        "layer": layer,
        "total": sum(values),
        "width": f"{max(len(weeks), 13) * BAR_STEP:.0f}",
        "height": f"{CHART_HEIGHT:.0f}",
        "bar": f"{BAR_STEP - BAR_GAP:.0f}",
    }


@register.inclusion_tag("memory/_fact_timeline.html")
def fact_timeline(fact: Fact, facts: Sequence[Fact]) -> dict[str, object]:
    """Draw the validity of `fact` on a time axis from the first start in `facts` until now."""
    now = timezone.now()
    first = min(other.valid_from for other in facts)
    span = max((now - first).total_seconds(), 1.0)

    def percent(moment: datetime) -> float:
        return 100 * min(max((moment - first).total_seconds() / span, 0.0), 1.0)

    until = getattr(fact, "until", None) or fact.valid_until
    start, end = percent(fact.valid_from), percent(until or now)
    return {
        "start": f"{min(start, 99):.1f}",
        "width": f"{max(end - start, 1):.1f}",
        "is_open": until is None,
    }
