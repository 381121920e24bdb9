"""The commands that the pages name exist, with the options that they show."""

import re
from collections.abc import Iterator

import pytest
from django.core.management import get_commands, load_command_class

from tests.docs.examples import FENCE, ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Without those that also name what was removed, and the one of tests, which has a test of its own.
CURRENT = [
    page
    for page in PAGES
    if page.name not in ("CHANGELOG.md", "SECURITY.md") and page.parent.name != "changes"
]
# Not the name of a container, and not the folder of the chart.
COMMAND = re.compile(
    r"(?:^|[\s(])(?:strata|(?:\S*python )?(?:\S*/)?manage\.py) (?!strata |deploy/)([a-z_]+)(.*)"
)
TARGET = re.compile(r"(?:^|&& )make ([a-z]+)")
PATH = re.compile(
    r"(?<![\w/.…:-])(?:\.venv/bin|tests|deploy|config|projects|chat|memory|docs)/[\w./-]*\w"
)
# Files that the reader writes.
WRITTEN = re.compile(r"deploy/docker/\.env|.*(?:NAME|VERSION).*")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def shown(text: str) -> Iterator[str]:
    """Yield what a page shows as code: lines of examples, and code within a sentence."""
    for match in FENCE.finditer(text):
        if match[1] == "sh":
            yield from match[2].replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def options(command: str) -> set[str]:
    """Return the options of a command, those of its parts included."""
    parser = load_command_class(get_commands()[command], command).create_parser("strata", command)
    parsers = [parser]
    for action in parser._actions:
        if isinstance(action.choices, dict):
            parsers += action.choices.values()
    return {name for each in parsers for name in each._option_string_actions}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_exists_with_its_options(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for code in shown(page.read_text()):
        for target in TARGET.findall(code):
            assert target in targets, code
        for name, rest in COMMAND.findall(code):
            # `version` is no command of Django's kind.
            if name == "version":
                continue
            assert name in get_commands(), code
            # Up to where another program begins.
            own = re.split(r"[|;&]", rest)[0]
            assert set(OPTION.findall(own)) <= options(name), code


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_path_that_a_page_names_exists(page):
    for code in shown(page.read_text()):
        for path in PATH.findall(code):
            assert (ROOT / path).exists() or WRITTEN.fullmatch(path), code


def test_commands_are_found():
    page = "```sh\n.venv/bin/python manage.py backup -\n```\nOr `strata run web --port 1 | cat`."
    found = [COMMAND.findall(code) for code in shown(page)]
    assert [names[0][0] for names in found] == ["backup", "run"]
    assert {"--port", "--queues", "--host"} <= options("run")
