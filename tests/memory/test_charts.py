"""The chart of facts over time."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from memory.templatetags.charts import fact_timeline

NOW = timezone.now()


def fact(since: int, until: int | None = None):
    """That began and ended so many days ago."""
    end = None if until is None else NOW - timedelta(days=until)
    return SimpleNamespace(valid_from=NOW - timedelta(days=since), valid_until=None, until=end)


@pytest.mark.parametrize(
    ("item", "start", "width", "is_open"),
    [
        (fact(100), "0.0", "100.0", True),
        (fact(50), "50.0", "50.0", True),
        (fact(100, 75), "0.0", "25.0", False),
        # What begins tomorrow, and what was only for a moment, can still be seen.
        (fact(-1), "99.0", "1.0", True),
        (fact(20, 20), "80.0", "1.0", False),
    ],
)
def test_a_stretch_of_the_whole_time(item, start, width, is_open):
    drawn = fact_timeline(item, [fact(100), item])
    assert (drawn["start"], drawn["width"], drawn["is_open"]) == (start, width, is_open)
