"""What the API does is what its schema says, whatever it is sent."""

import re

import pytest


@pytest.mark.timeout(900)
def test_nothing_that_is_sent_breaks_the_schema(explore):
    told = explore(20)
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}" in told, told
    tested = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", told)
    assert tested is not None and len({*tested.groups()}) == 1, told
