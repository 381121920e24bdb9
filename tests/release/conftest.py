"""Rehearsals of a release, with real packages and file systems. `make rehearsal` runs them and
prints what they measure; `make test` leaves them out.
"""

import os
from collections.abc import Callable

import pytest

collect_ignore_glob = [] if os.environ.get("STRATA_RELEASE") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/release/" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(1_800))


def pytest_terminal_summary(terminalreporter) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, figures in report.user_properties:
            if name == "release":
                terminalreporter.section(report.nodeid.rpartition("::")[2])
                for what, figure in figures.items():
                    terminalreporter.write_line(f"{figure:>12}  {what}")


@pytest.fixture
def report(request) -> Callable[[dict[str, str]], None]:
    """Prints these figures at the end of the run, each with what it measures."""
    figures: dict[str, str] = {}
    request.node.user_properties.append(("release", figures))
    return figures.update
