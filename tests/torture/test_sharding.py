"""Memory on tables that are cut by project, as they would lie in shards."""

import os
import subprocess
import sys

from tests.server import ROOT

SHORT = (
    "tests/memory/test_conversations.py::test_an_entry_covers_the_messages",
    "tests/memory/test_conversations.py::test_an_idle_session_is_due_and_a_fresh_one_is_not",
    "tests/memory/test_conversations.py::test_only_one_worker_holds_a_session",
    "tests/memory/test_conversations.py::test_a_worker_that_was_overtaken_commits_nothing",
    "tests/memory/test_recalled_sections.py::test_private_talk_is_recalled_in_private_only",
    "tests/memory/test_recall.py::test_each_filter_is_kept",
    "tests/memory/test_proposed_entries.py::test_a_digest_that_reads_like_instructions_waits_and_its_children_stand_in",
    "tests/memory/test_indexing.py::test_a_turn_that_changes_while_it_is_read_is_read_again",
    "tests/memory/test_facts_extracted.py::test_redacted_words_leave_the_facts_too",
    "tests/memory/test_facts_forgotten.py::test_an_entry_takes_its_facts_along",
)
FULL = ("tests/memory",)


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
