"""A hundred replies at a time: through Strata, and from the model itself."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from statistics import median

import pytest

from config.management.commands.up import WORKER_NICENESS
from tests.load import readers
from tests.load.model_server import Speaking, speaker
from tests.server import Installation, Web, installed, worker
from tests.torture.clients import Api

pytestmark = pytest.mark.timeout(1_800)

STREAMS = 100
WORDS = 400
SECONDS = 60
ROUNDS = 2


@pytest.fixture(scope="module")
def model() -> Iterator[Speaking]:
    with speaker(WORDS) as speaking:
        yield speaking


@pytest.fixture(scope="module")
def strata(model, tmp_path_factory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("strata")
    with (
        installed(folder, model) as installation,
        worker(installation, "--concurrency=2", nice=WORKER_NICENESS),
    ):
        yield installation


@pytest.mark.parametrize("processes", [1, 2])
def test_a_hundred_replies_are_hardly_slower_than_the_model(
    model, strata, processes, report_figures
):
    with ExitStack() as stack:
        webs = [stack.enter_context(Web(strata)).url for _ in range(processes)]
        api = Api(webs[0], strata.token)
        slug = api.call("POST", "projects/", {"name": f"With {processes}"})["slug"]
        sessions = [
            api.call("POST", f"projects/{slug}/sessions/", {"title": f"Chat {number}"})["id"]
            for number in range(STREAMS)
        ]
        direct = readers.Crowd(SECONDS, WORDS, model.base_url, askers=STREAMS)
        through = readers.Crowd(SECONDS, WORDS, "", webs, api.token, sessions)
        # What processes load for their first message and the first work after it.
        readers.figures(readers.start(replace(through, seconds=0)))
        figures = [
            [readers.figures(readers.start(crowd)) for crowd in (direct, through)]
            for _ in range(ROUNDS)
        ]
    pairs = list(zip(*figures, strict=True))
    words = [sum(round_figures.words for round_figures in rounds) for rounds in pairs]
    firsts = [
        median([first for round_figures in rounds for first in round_figures.firsts])
        for rounds in pairs
    ]
    assert [
        round_figures.wrong for rounds in pairs for round_figures in rounds if round_figures.wrong
    ] == []
    name = f"{STREAMS} replies at a time, {processes} web"
    report_figures(
        f"{name}: words, model and Strata", *(n / SECONDS / ROUNDS for n in words), unit="/s"
    )
    report_figures(f"{name}: first word", *(seconds * 1000 for seconds in firsts), unit="ms")
    report_figures(
        f"{name}: words ≥ .9, first word ≤ 1.15", words[1] / words[0], firsts[1] / firsts[0]
    )
    assert words[1] >= 0.9 * words[0]
    assert firsts[1] <= 1.15 * firsts[0]
