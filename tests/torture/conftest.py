"""Faults and races by the hundred. `make torture` sets STRATA_TORTURE and runs the long versions;
`make test` runs the same tests with a tenth of the numbers or less.
"""

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TypeVar

import pytest

from tests.server import ROOT, database_url

T = TypeVar("T")

LONG = os.environ.get("STRATA_TORTURE", "") not in ("", "0")
# Seconds that one test may take, on a machine with two slow cores.
PATIENCE = 3_600 if LONG else 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_ours = Path(__file__).parent in item.path.parents
        if is_ours and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE))


def pytest_terminal_summary(terminalreporter) -> None:
    """What was done, by test and kind."""
    if not LONG:
        return
    terminalreporter.section("torture")
    for reports in (terminalreporter.getreports("passed"), terminalreporter.getreports("failed")):
        for report in reports:
            for counts in (value for name, value in report.user_properties if name == "torture"):
                test = report.nodeid.rpartition("::")[2]
                terminalreporter.write_line(f"{test} ({report.outcome})")
                for counted, number in counts.items():
                    terminalreporter.write_line(f"  {number:>7,}  {counted}")


@pytest.fixture(scope="session")
def scale() -> Callable[[T, T], T]:
    """Chooses between what is for the long version and what is for the short one."""
    return lambda full, short: full if LONG else short


@pytest.fixture
def tally(request) -> Callable[..., None]:
    """Counts what was done, for the summary at the end: `tally("edits won", 12)`."""
    counts: dict[str, int] = {}
    request.node.user_properties.append(("torture", counts))

    def count(what: str, number: int = 1) -> None:
        counts[what] = counts.get(what, 0) + number

    return count


@pytest.fixture
def chance() -> random.Random:
    """Where the random instants come from. STRATA_TORTURE_SEED plays the same choices again; what
    the machine makes of them still differs.
    """
    seed = int(os.environ.get("STRATA_TORTURE_SEED") or random.randrange(2**32))
    print(f"STRATA_TORTURE_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def crew(django_db_setup, model_server) -> Iterator[ForkServerContext]:
    """Makes processes that work on the test's database, as `multiprocessing` does.

    They come from one that has Django set up, so that a new one is there at once.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.django_setup"])
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DATABASE_URL", database_url())
        environment.setenv("STRATA_CHAT_MODEL", "openai-chat:scripted")
        environment.setenv("STRATA_SYSTEM_MODEL", "openai-chat:scripted")
        environment.setenv("STRATA_CONTEXT_TOKENS", "200000")
        environment.setenv("OPENAI_BASE_URL", model_server.base_url)
        environment.setenv("PYTHONPATH", str(ROOT))
        forkserver.ensure_running()
    return context
