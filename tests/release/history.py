"""The code of earlier commits, which rehearsals upgrade from."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.server import ROOT

# Version 0.1.0, which started its processes without a command of its own.
VERSION_0_1 = "dbe75aa5"
CODE = ("manage.py", "config", "projects", "chat", "memory", "templates", "static")


def code_before(migrations: int, folder: Path) -> Path:
    """Unpack the code before the newest migrations, or that of STRATA_OLD_COMMIT, into a folder."""
    return code_of(os.environ.get("STRATA_OLD_COMMIT") or _before(migrations), folder)


def code_of(commit: str, folder: Path) -> Path:
    """Unpack the code of a commit into a folder."""
    folder.mkdir()
    archive = _git("archive", commit, *CODE)
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive, check=True)
    return folder


def _before(migrations: int) -> str:
    options = ("--format=%H", "--diff-filter=A", "--", "*/migrations/0*.py")
    commits = _git("log", f"-{migrations}", *options).decode().split()
    if len(commits) < migrations:
        pytest.skip("this checkout has no history")
    return f"{commits[-1]}^"


def has_commit(name: str) -> bool:
    """Whether this checkout has the history up to this commit."""
    done = subprocess.run(["git", "cat-file", "-e", name], cwd=ROOT, capture_output=True)
    return done.returncode == 0


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
