"""Runs the fenced examples of a page, from top to bottom, against a running Strata.

- `sh` is run by bash, which stops at the first command that fails. Variables that one block sets
  are there in the next, and those that it exports in the environment of the page's Python.
- `python` is run in one namespace for the whole page.
- `json` or `text` below an example is what the example prints: of JSON, members that are not shown
  may be there, too, and "…" stands for anything; in a text, … stands for anything.
- `json` elsewhere, and `yaml`, are something to write down, and must be what they say.

Pages say `http://127.0.0.1:8000`, which is the running Strata wherever it is. They may call
`.venv/bin/python manage.py`, as README.md does.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# What pages say in place of the address of the Strata that runs.
ADDRESS = "http://127.0.0.1:8000"
RUN = ("sh", "python")
PRINTED = ("json", "text")
ANYTHING = "…"
# Seconds.
PATIENCE = 60

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A fenced block: its language, its text, and the number of its first line in the page."""

    language: str
    text: str
    line: int


def examples(page: str) -> list[Example]:
    return [
        Example(match[1], match[2], page.count("\n", 0, match.start(2)) + 1)
        for match in FENCE.finditer(page)
    ]


@dataclass
class Reader:
    """Somebody who does what the page `name` says, in `folder`, with the Strata at `url`."""

    name: str
    url: str
    folder: Path
    environment: dict[str, str]
    names: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, target in {
            "manage.py": ROOT / "manage.py",
            ".venv": Path(sys.prefix),
        }.items():
            (self.folder / name).symlink_to(target)

    def follow(self, page: str) -> int:
        """Does all of it, and returns how many examples were run or parsed.

        Raises AssertionError.
        """
        count, printed = 0, None
        for example in examples(page):
            where = f"{self.name}:{example.line}"
            if example.language in RUN:
                printed = self._run(example, where)
                count += 1
            elif example.language == "yaml":
                yaml.safe_load(example.text)
                count += 1
            elif example.language in PRINTED:
                self._compare(example, printed, where)
                printed = None
            else:
                raise AssertionError(f"{where}: nobody runs “{example.language}”")
        return count

    def _run(self, example: Example, where: str) -> str:
        text = example.text.replace(ADDRESS, self.url)
        run = self._shell if example.language == "sh" else self._python
        return run(text, where).replace(self.url, ADDRESS)

    def _shell(self, text: str, where: str) -> str:
        environment_file, variables = self.folder / ".environment", self.folder / ".variables"
        variables.touch()
        # Each block is a bash of its own, which takes over what is not its for good.
        known = f"declare -p | grep -v '^declare -[[:alpha:]]*r' > {variables}"
        script = (
            f"source {variables}\nset -euo pipefail\n{text}\n{known}\nenv -0 > {environment_file}\n"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{where}:\n{text}\n{done.stdout}\n{done.stderr}"
        pairs = (pair.partition("=") for pair in environment_file.read_text().split("\0") if pair)
        self.environment |= {name: value for name, _, value in pairs}
        return done.stdout

    def _python(self, text: str, where: str) -> str:
        path, _, line = where.rpartition(":")
        # So that a traceback names the line of the page.
        code = compile("\n" * (int(line) - 1) + text, path, "exec")
        printed, before = io.StringIO(), dict(os.environ)
        os.environ.update(self.environment)
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                exec(code, self.names)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return printed.getvalue()

    def _compare(self, example: Example, printed: str | None, where: str) -> None:
        if example.language == "json":
            expected = json.loads(example.text)
            is_like_printed = printed is None or is_like(expected, json.loads(printed))
        else:
            assert printed is not None, f"{where}: this stands below no example"
            is_like_printed = is_text_like(example.text.strip(), printed.strip())
        assert is_like_printed, f"{where}: the page shows\n{example.text}\nand there is\n{printed}"


def is_like(expected: object, actual: object) -> bool:
    """Whether `there` is the JSON that a page shows, or has more members."""
    if expected == ANYTHING:
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(
            name in actual and is_like(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        if expected[-1:] == [ANYTHING]:
            expected, actual = expected[:-1], actual[: len(expected) - 1]
        return len(expected) == len(actual) and all(map(is_like, expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return is_text_like(expected, actual)
    return expected == actual


def is_text_like(expected: str, actual: str) -> bool:
    """Whether `there` is the text that a page shows, anything standing where it shows “…”."""
    pattern = ".*".join(map(re.escape, expected.split(ANYTHING)))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None
