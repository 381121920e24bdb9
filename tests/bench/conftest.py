"""Speed, as ratios within one run. `make bench` runs it and prints the table; `make test` does not.

These machines are shared and noisy: what is compared is measured in turns, and told with its
medians and their spread.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

ROWS = pytest.StashKey[list["Row | str"]]()


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

    def __str__(self) -> str:
        bound = "" if self.bound is None else f"{self.bound:.2f}"
        line = (
            f"{self.what:<58} {_format_seconds(self.base):>20} {_format_seconds(self.against):>20}"
        )
        return f"{line} {self.ratio:>6.2f} {bound:>6}"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    terminalreporter.section("bench")
    head = f"{'what':<58} {'base':>20} {'against':>20} {'ratio':>6} {'bound':>6}"
    terminalreporter.write_line(head)
    for row in config.stash[ROWS]:
        terminalreporter.write_line(str(row))


def _format_seconds(seconds: list[float]) -> str:
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
def report_figures(request) -> Callable[..., None]:
    """Puts figures into the table that are no comparison of times."""

    def put(what: str, *figures: float, unit: str = "") -> None:
        text = "  ".join(f"{figure:,.3f}".rstrip("0").rstrip(".") for figure in figures)
        request.config.stash[ROWS].append(f"{what:<58} {text} {unit}")

    return put


@pytest.fixture
def p95s() -> Callable[[list[float], int], list[float]]:
    """The 95th percentile of each block of so many times: for its median, and its spread."""

    def cut(times: list[float], block: int) -> list[float]:
        blocks = (times[start : start + block] for start in range(0, len(times), block))
        return [statistics.quantiles(item, n=20)[-1] for item in blocks]

    return cut


@pytest.fixture
def timed() -> Iterator[Callable[[Callable[[], object]], float]]:
    """How many seconds a call takes."""

    def measure(call: Callable[[], object]) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    yield measure
