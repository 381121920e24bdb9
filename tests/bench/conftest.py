"""Speed, as ratios within one run. `make bench` runs it and prints the table; `make test` does not.

These machines are shared and noisy: what is compared is measured in turns, and told with its
medians and their spread.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

ROWS = pytest.StashKey[list["Row"]]()


@dataclass(frozen=True)
class Row:
    """One comparison: seconds of `base` and of `against`, and the bound of their ratio."""

    what: str
    base: list[float]
    against: list[float]
    bound: float | None

    @property
    def ratio(self) -> float:
        return statistics.median(self.against) / statistics.median(self.base)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    terminalreporter.section("bench")
    head = f"{'what':<58} {'base':>20} {'against':>20} {'ratio':>6} {'bound':>6}"
    terminalreporter.write_line(head)
    for row in config.stash[ROWS]:
        bound = "" if row.bound is None else f"{row.bound:.2f}"
        line = f"{row.what:<58} {_told(row.base):>20} {_told(row.against):>20}"
        terminalreporter.write_line(f"{line} {row.ratio:>6.2f} {bound:>6}")


def _told(seconds: list[float]) -> str:
    """The median and the distance between the quartiles, in milliseconds."""
    middle = statistics.median(seconds) * 1000
    if len(seconds) < 2:
        return f"{middle:.1f} ms"
    low, _, high = statistics.quantiles(seconds, n=4)
    return f"{middle:.1f} ms ±{(high - low) * 500:.1f}"


@pytest.fixture
def compare(request) -> Callable[..., float]:
    """Puts a comparison into the table and returns its ratio."""

    def put(
        what: str, base: list[float], against: list[float], bound: float | None = None
    ) -> float:
        row = Row(what, base, against, bound)
        request.config.stash[ROWS].append(row)
        return row.ratio

    return put


@pytest.fixture
def timed() -> Iterator[Callable[[Callable[[], object]], float]]:
    """How many seconds a call takes."""

    def measure(call: Callable[[], object]) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    yield measure
