"""Memory keeps its invariants under any sequence of acts of a team."""

import time

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.torture.conftest import LONG
from tests.torture.state_machine import Memory

pytestmark = pytest.mark.django_db(transaction=True)

COMMON = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    report_multiple_bugs=False,
)
# Other stories each time, and of one that goes wrong the shortest that does.
MANY = settings(
    COMMON,
    max_examples=2_000,
    stateful_step_count=50,
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
)
# The same few each time.
FEW = settings(
    COMMON, max_examples=7, stateful_step_count=25, phases=[Phase.generate], derandomize=True
)
SEED = 13
HOURS = 3_600


@pytest.mark.timeout(8 * HOURS if LONG else 900)
def test_memory_keeps_its_word_whatever_a_team_does(tally):
    began = time.monotonic()
    if LONG:
        run_state_machine_as_test(Memory, settings=MANY)
    else:
        run_state_machine_as_test(seed(SEED)(Memory), settings=FEW)
    tally("runs", Memory.runs)
    tally("acts, and all promises asked after each", Memory.acts)
    tally("seconds", int(time.monotonic() - began))
