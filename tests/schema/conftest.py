"""A whole Strata in processes of its own, with a world in it. No ORM here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.schema.running import run
from tests.schema.world import build
from tests.scripted import ScriptedModel
from tests.server import Web, installed


@pytest.fixture
def explore(tmp_path_factory) -> Iterator[Callable[[int], str]]:
    """Runs schemathesis with so many examples for each operation on a new world, and returns what
    it printed. Raises AssertionError, with all of it, when it found something.
    """
    data_dir: Path = tmp_path_factory.mktemp("strata-schema")
    with ScriptedModel() as model, installed(data_dir, model) as made, Web(made) as web:
        world = build(made, web.url)

        def go(examples: int) -> str:
            done = run(world, web.url, examples, data_dir)
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
            return done.stdout

        yield go
