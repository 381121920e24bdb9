"""What the API does is what its schema says, whatever it is sent."""

import re

import pytest


@pytest.mark.timeout(900)
def test_nothing_that_is_sent_breaks_the_schema(explore):
    told = explore(20)
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}" in told, told
    found = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", told)
    assert found is not None, told
    selected, there, tested = map(int, found.groups())
    # All but the end of the token that it is done with.
    assert there - 1 == selected == tested, told
