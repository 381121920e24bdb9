"""Memory on tables that are cut by project, as they would lie in shards."""

import os
import subprocess
import sys

from tests.server import ROOT

SHORT = (
    "tests/memory/test_conversations.py::test_an_entry_covers_what_was_said",
    "tests/memory/test_conversations.py::test_an_idle_session_is_due_and_a_fresh_one_is_not",
    "tests/memory/test_conversations.py::test_only_one_worker_holds_a_session",
    "tests/memory/test_conversations.py::test_a_worker_that_was_overtaken_commits_nothing",
    "tests/memory/test_recall.py::test_each_filter_is_kept",
    "tests/memory/test_recall.py::test_a_private_session_is_its_creators_alone",
    "tests/memory/test_recalled_sections.py::test_private_talk_is_recalled_in_private_only",
)
FULL = (
    "tests/memory/test_conversations.py",
    "tests/memory/test_recall.py",
    "tests/memory/test_recalled_sections.py",
    "tests/memory/test_facts_prompt.py",
)


def test_memory_works_on_tables_that_are_cut_by_project(scale, tally):
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *scale(FULL, SHORT)],
        cwd=ROOT,
        env=os.environ | {"STRATA_SHARDED": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    [passed] = [word for word in done.stdout.split("\n")[-2:] if "passed" in word]
    tally("tests on tables cut by project", int(passed.split()[0]))
