"""Imports run one way: memory → chat → projects."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
AGREED = set(
    """manage.py config projects chat memory templates static tests requirements.txt
        requirements-dev.txt pyproject.toml Makefile README.md LICENSE CHANGELOG.md
        SECURITY.md docs deploy .ci .gitignore .env.example""".split()
)
FORBIDDEN = {"projects": {"chat", "memory"}, "chat": {"memory"}, "memory": set()}


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("app", FORBIDDEN)
def test_an_app_imports_only_what_lies_below_it(app):
    modules = list((ROOT / app).rglob("*.py"))
    assert modules
    upward = {
        str(module.relative_to(ROOT)): imported(module) & (FORBIDDEN[app] | {"tests"})
        for module in modules
    }
    assert {name: names for name, names in upward.items() if names} == {}


@pytest.mark.parametrize("app", FORBIDDEN)
def test_only_config_reads_the_environment(app):
    for module in (ROOT / app).rglob("*.py"):
        text = module.read_text()
        assert "os.environ" not in text and "getenv" not in text, module


def test_the_top_level_holds_only_what_was_agreed():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {path.split("/")[0] for path in listed} <= AGREED
