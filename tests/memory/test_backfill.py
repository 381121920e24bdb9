"""Entries from before there were lines get them, in batches that may end at any moment."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import backfill, tasks
from memory.backfill import add_lines, entries_without_lines
from memory.forgetting.service import ForgetScope, forget
from memory.layers import coverage, cycle
from memory.layers.lines import Line
from memory.models import Call, Entry, EntryStatus
from tests.memory.daily_entries import NOW, remember
from tests.memory.test_forgotten_lines import talk_about

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before(project, owner):
    """Conversations and digests without lines, as a version before wrote them."""
    project.bank_max_tokens = 150
    project.save()
    for day in range(4):
        for number in range(2):
            text = f"We decided that build {day}{number} takes {day} minutes on server S-{day}."
            talk_about(project, owner, day, [text, "Thanks!"])
    cycle.run(NOW.replace(year=2025, month=3, day=20))
    assert Entry.objects.exclude(granularity="conversation").exists()
    texts = dict(Entry.objects.values_list("pk", "summary"))
    Entry.objects.update(lines=[])
    return texts


def test_quotations_get_their_messages_and_digests_are_chosen_from_them(before, project):
    assert add_lines(seconds=60)
    assert not entries_without_lines().exists()
    assert dict(Entry.objects.values_list("pk", "summary")) == before
    for entry in Entry.objects.filter(granularity="conversation"):
        [line] = entry.read_lines()
        assert line.sources == (entry.session.messages.get(seq=1).pk,)
    cycle.run(NOW.replace(year=2025, month=3, day=20))
    for digest in Entry.objects.exclude(granularity="conversation"):
        assert digest.state != EntryStatus.STALE
        assert all(line.sources for line in digest.read_lines())
    assert not Call.objects.exists()
    message = Entry.objects.filter(granularity="conversation").first().session.messages.get(seq=1)
    forget(project, ForgetScope(message=message.pk))
    assert not Entry.objects.filter(withheld=True).exclude(granularity="conversation").exists()


def test_the_path_of_a_chat_is_read_once_for_all_its_entries(before, project, owner):
    def count_queries() -> int:
        Entry.objects.update(lines=[])
        with CaptureQueriesContext(connection) as queries:
            assert add_lines(seconds=60)
        return len(queries)

    texts = [f"Step {number} takes {number} minutes." for number in range(6)]
    session = talk_about(project, owner, 5, texts)
    Entry.objects.all().delete()
    for seq in range(1, 7):
        messages = coverage.read_range(session, seq - 1, seq)
        [message] = messages.contributing
        line = Line(message.text, message.created_at.date(), "owner", (message.pk,))
        coverage.new_entry(session, messages, [line], "extractive", NOW).save()
        if seq == 1:
            single = count_queries()
    # The messages of each entry.
    assert count_queries() == single + 5


def test_it_can_stop_and_continue(before, monkeypatch):
    monkeypatch.setattr(backfill, "BATCH_SIZE", 3)
    rest = [entries_without_lines().count()]
    while not add_lines(seconds=0):
        rest.append(entries_without_lines().count())
    assert rest == sorted(rest, reverse=True) and len(rest) >= 3
    assert not entries_without_lines().exists()


def test_the_lines_of_a_model_rest_on_the_whole_entry(project, owner):
    entry = remember(project, owner, "- The cutover is on 3 March.\n- Ana owns it.")
    add_lines(seconds=60)
    entry.refresh_from_db()
    assert [(row["text"], row["sources"]) for row in entry.lines] == [
        ("The cutover is on 3 March.", []),
        ("Ana owns it.", []),
    ]
    assert entry.state == EntryStatus.LIVE


def test_the_cycle_starts_it_only_while_entries_have_no_lines(project, owner, monkeypatch):
    started = []
    monkeypatch.setattr(cycle, "due", lambda now: cycle.DueWork())
    monkeypatch.setattr(tasks.add_lines, "apply_async", lambda **options: started.append(options))
    tasks.run_cycle()
    assert not started
    remember(project, owner, "- The cutover is on 3 March.")
    tasks.run_cycle()
    assert len(started) == 1
    tasks.add_lines()
    tasks.run_cycle()
    assert len(started) == 1
