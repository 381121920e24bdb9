"""The API behaves as its schema says, for random requests."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.schema.schemathesis_run import run
from tests.schema.world import build
from tests.scripted import ScriptedModel
from tests.server import Web, installed

# Seconds: some thousands of requests, or ten times as many.
pytestmark = pytest.mark.timeout(7_200)
PHASES = ("Examples", "Coverage", "Fuzzing", "Stateful")


@pytest.fixture
def explore(tmp_path_factory) -> Iterator[Callable[[int, str], str]]:
    """Runs schemathesis on a new world, with so many examples for each operation and its coverage
    phase as `run` says, and returns what it printed. Raises AssertionError, with all of it, when
    it found something.
    """
    data_dir: Path = tmp_path_factory.mktemp("strata-schema")
    with (
        ScriptedModel() as model,
        installed(data_dir, model) as installation,
        Web(installation) as web,
    ):
        world = build(installation, web.url)

        def go(examples: int, covered: str) -> str:
            done = run(world, web.url, examples, data_dir, covered)
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
            return done.stdout

        yield go


def test_nothing_that_is_sent_breaks_the_schema(explore, scale, tally):
    # What is wrong in a body is tried by hand in tests/access, too.
    output = explore(scale(200, 5), scale("all", "positive"))
    for phase in PHASES:
        assert f"✅ {phase}" in output, output
    match = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", output)
    assert match is not None, output
    selected, operation_count, tested = map(int, match.groups())
    # All but the end of the token that it is done with.
    assert operation_count - 1 == selected == tested, output
    cases = re.search(r"(\d+) generated", output)
    assert cases is not None, output
    tally("requests to the API", int(cases[1]))
