"""Every promise of SECURITY.md names tests that exist."""

import ast
import re

import pytest

from tests.docs.examples import ROOT

PROMISES = ROOT / "SECURITY.md"
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<tests>`[^|]+) \|$", re.MULTILINE)


def section() -> str:
    text = PROMISES.read_text()
    return text.partition("## What Strata promises\n")[2].partition("\n## ")[0]


def names_in(path: str) -> set[str]:
    """Return the names of the tests of a module, as pytest writes them."""
    names = set()
    for node in ast.parse((ROOT / "tests" / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (
                statement for statement in node.body if isinstance(statement, ast.FunctionDef)
            )
            names |= {f"{node.name}::{method.name}" for method in methods}
    return names


@pytest.mark.parametrize("row", list(ROW.finditer(section())), ids=lambda row: row["promise"][:60])
def test_a_promise_is_held_by_tests_that_exist(row):
    for test in row["tests"].split("<br>"):
        path, _, name = test.strip("`").partition("::")
        assert name.rpartition("::")[2].startswith("test_")
        assert name in names_in(path), test


def test_every_promise_names_a_test():
    promises = section().count("\n| ") - 2 * section().count("\n| promise | tests |")
    assert len(ROW.findall(section())) == promises > 20
