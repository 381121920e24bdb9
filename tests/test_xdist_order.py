"""The first tests of each process in a parallel run."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from tests.xdist_order import ALONE, LONGEST, SHARING, dealt

ROOT = Path("/tests")
FILES = (
    *("chat/test_a.py", "chat/openai_api/test_b.py", "docs/test_c.py", "e2e/test_d.py"),
    *("e2e/test_e.py", "memory/test_f.py", "torture/test_g.py", "torture/test_h.py"),
)


@dataclass(frozen=True)
class Test:
    __test__ = False
    path: Path
    number: int


TESTS = [Test(ROOT / file, number) for file in FILES for number in range(30)]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7])
def test_each_test_is_dealt_once(processes):
    order = dealt(TESTS, ROOT, processes)
    assert len(order) == len(TESTS)
    assert set(order) == set(TESTS)


def test_each_process_begins_with_what_takes_long_and_ends_with_what_is_quick():
    order = dealt(TESTS, ROOT, 3)
    share = len(TESTS) // 3
    shares = [order[share * number : share * (number + 1)] for number in range(3)]
    assert [_files(tests) for tests in shares] == [
        ["e2e/test_d.py", "chat/test_a.py", "e2e/test_e.py", "chat/test_a.py"],
        ["openai_api/test_b.py", "chat/test_a.py", "torture/test_g.py", "memory/test_f.py"],
        ["docs/test_c.py", "memory/test_f.py", "torture/test_h.py", "memory/test_f.py"],
    ]


def test_files_that_share_a_browser_go_to_one_process():
    order = dealt(TESTS, ROOT, 4)
    places = [place for place, item in enumerate(order) if item.path.parent.name == "e2e"]
    assert max(places) < len(TESTS) // 4


def test_what_takes_long_has_its_present_name():
    tests = Path(__file__).parent
    assert all((tests / folder).is_dir() for folder in (ALONE, *SHARING))
    assert all((tests / ALONE / name).is_file() for name in LONGEST)


def _files(tests: list[Test]) -> list[str]:
    """The files as they come, each as often as others come between its tests."""
    names = ("/".join(test.path.parts[-2:]) for test in tests)
    return [name for name, _ in groupby(names)]
