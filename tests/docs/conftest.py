"""A complete Strata in separate processes for the examples in docs/. No ORM here."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.examples import Reader
from tests.scripted import ScriptedModel
from tests.server import Installation, Web, installed, worker


@pytest.fixture(scope="session")
def strata(tmp_path_factory) -> Iterator[tuple[Installation, Web]]:
    data_dir = tmp_path_factory.mktemp("strata-docs")
    with (
        ScriptedModel() as model,
        installed(data_dir, model) as installation,
        Web(installation) as web,
        worker(installation),
    ):
        yield installation, web


@pytest.fixture
def reader(strata, tmp_path) -> Callable[[str], Reader]:
    """Makes a reader of the page of that name."""

    def make(name: str) -> Reader:
        installation, web = strata
        return Reader(name, web.url, tmp_path, dict(installation.environment))

    return make


@pytest.fixture
def in_vain(tmp_path) -> Reader:
    """A reader whose Strata is not running."""
    return Reader("page.md", "http://127.0.0.1:9", Path(tmp_path), dict(os.environ))
