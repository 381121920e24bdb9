"""Two years of daily messages: the bank stays in its budget; the loss of digests is reported.

STRATA_LOCOMO names a folder with the files of LoCoMo; without it the talk is made up.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle as again_and_again
from itertools import islice
from pathlib import Path

import pytest

from memory.layers import cycle, digests
from memory.layers.bank_cache import rendered_bank
from memory.layers.periods import Granularity
from memory.layers.statistics import ALL, GROUPS, kept_by_layer, particulars_by_layer
from projects.core import token_counting
from projects.models import Project
from projects.services import create_project
from tests.torture import daily_talks
from tests.torture.daily_talks import Talk
from tests.torture.test_memory_kills import check_coverage, check_parents, check_ranges

pytestmark = pytest.mark.django_db(transaction=True)

# The last Monday but one of a month: that whole month has settled after five weeks and a day.
START = datetime(2024, 1, 22, tzinfo=UTC)
DAY = timedelta(days=1)
HASTY = "a hasty model"
FOLDER = os.environ.get("STRATA_LOCOMO", "")


@pytest.fixture
def talks(scale, chance) -> list[Talk]:
    """The talks of the whole time, in order."""
    number = scale(24 * 200, 28)
    if FOLDER and scale(True, False):
        return list(islice(again_and_again(daily_talks.from_files(Path(FOLDER))), number))
    return list(daily_talks.generate_talks(chance, number, turns=scale(20, 6)))


@pytest.fixture(params=["quotes", HASTY])
def writer(request, settings) -> str:
    """Who writes the summaries."""
    if request.param == HASTY:
        request.getfixturevalue("scripted").default = daily_talks.Hasty()
    else:
        settings.SYSTEM_MODEL = "extractive"
    return request.param


def days(talks: list[Talk], number: int) -> Iterator[tuple[datetime, list[Talk]]]:
    """Each day's midnight, and what is talked on that day."""
    for day in range(number):
        first, last = (len(talks) * item // number for item in (day, day + 1))
        yield START + day * DAY, talks[first:last]


def test_two_years_of_daily_talk(owner, talks, writer, scale, tally: Callable):
    project = create_project(owner, name="Two years", bank_max_tokens=scale(2_000, 300))
    took: list[float] = []
    fullest = 0
    for midnight, turns in days(talks, scale(730, 42)):
        for number, talk in enumerate(turns):
            daily_talks.post(project, talk, midnight + timedelta(hours=8, minutes=40 * number))
        now = midnight + DAY
        begun = time.perf_counter()
        cycle.run(now, project)
        took.append(time.perf_counter() - begun)
        length = token_counting.count(rendered_bank(project).text)
        assert length <= project.bank_max_tokens
        assert not cycle.due(now, project)
        fullest = max(fullest, length)
    check_ranges()
    check_parents()
    check_coverage(tally)
    if writer == HASTY:
        check_facts(project)
    assert fullest > project.bank_max_tokens * 0.7
    least = {Granularity.CONVERSATION, Granularity.WEEK}
    assert set(particulars_by_layer(project)) >= scale(set(Granularity), least)
    assert len(digests.plannable_nodes(project)) < scale(300, 30) < project.entries.count()
    report_kept_particulars(project, tally)
    report_cycle_times(took, tally)


def check_facts(project: Project) -> None:
    """Whether of each speaker what was told last is true, and nothing else is any more."""
    facts = project.facts.with_validity()
    open_now = facts.filter(until=None)
    subjects = list(open_now.values_list("subject", flat=True))
    assert len(subjects) == len(set(subjects)) == len(set(facts.values_list("subject", flat=True)))
    assert facts.count() > len(subjects) > 1


def report_kept_particulars(project: Project, tally: Callable) -> None:
    counted = kept_by_layer(project)
    for layer, particulars in particulars_by_layer(project).items():
        assert particulars.share(ALL) == pytest.approx(counted[layer], abs=0.01)
        tally(f"{layer} digests", particulars.entries)
        for group in (*GROUPS, ALL):
            share = particulars.share(group)
            if share is not None:
                held = f"{particulars.held[group]:,} particulars ({group})"
                tally(f"% of {held} kept by {layer} digests", round(100 * share))


def report_cycle_times(took: list[float], tally: Callable) -> None:
    quarter = len(took) // 4
    for name, times in (("first", took[:quarter]), ("last", took[-quarter:])):
        tally(
            f"ms a day's cycle takes in the {name} quarter", round(1000 * statistics.median(times))
        )
