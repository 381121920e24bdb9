"""Why something was found, for people."""

from collections.abc import Mapping

from django import template
from django.utils.translation import gettext_lazy as _

register = template.Library()

# What the signals of memory.recall.fusion tell, by the beginnings of their names.
GROUPS = (
    (_("its words"), ("words",)),
    (_("words near in meaning"), ("meaning",)),
    (_("alike as a whole"), ("likeness",)),
    (_("when it was said"), ("asked_when", "day")),
)
OTHERS = _("who says it, and how")


@register.filter
def reasons(signals: Mapping[str, float]) -> list[tuple[str, float]]:
    """(what, how much it gave) for what speaks for a result, the most first."""
    sums: dict[str, float] = {}
    for name, value in signals.items():
        what = next((label for label, begins in GROUPS if name.startswith(begins)), OTHERS)
        sums[str(what)] = sums.get(str(what), 0.0) + value
    return sorted(((what, sum_) for what, sum_ in sums.items() if sum_ > 0), key=lambda it: -it[1])
