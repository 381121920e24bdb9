"""The code of earlier commits, which rehearsals upgrade from."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.server import ROOT

CODE = ("manage.py", "config", "projects", "chat", "memory", "templates", "static")


def code_before(migrations: int, folder: Path) -> Path:
    """Unpack the code before the newest migrations, or that of STRATA_OLD_COMMIT, into a folder."""
    commit = os.environ.get("STRATA_OLD_COMMIT") or _before(migrations)
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


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
