"""Memories from another program are proposed, accepted, and never summarised again."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations.edits import delete
from chat.conversations.messages import post_message
from chat.conversations.sessions import delete_session, restore_session
from chat.importers import import_file
from chat.models import Session
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import as_text, from_text
from memory.models import Cursor, Entry, EntryStatus
from memory.moderation import entry_operations
from tests.chat.exports import CLAUDE, file_of, zip_of

pytestmark = pytest.mark.django_db

PAGE = "/projects/billing/memory/"
ABOUT = "**Work**\n\nOlive runs a bakery in Bern.\n\n- She dislikes *wheat*."


def export(*texts: str):
    """Claude's zip file, in which it remembers `texts`, each of another project."""
    fields = {"conversations_memory": texts[0], "project_memories": dict(enumerate(texts[1:]))}
    return zip_of(
        {
            "conversations.json": file_of(CLAUDE).read(),
            "memories.json": json.dumps([fields]).encode(),
        }
    )


@pytest.fixture
def bring(project, owner):
    def bring(*texts: str):
        return import_file(project, owner, "data.zip", export(*texts))

    return bring


def memories() -> Session:
    return Session.objects.get(title="Memories from Claude")


def entries() -> list[Entry]:
    return list(memories().entries.order_by("first_seq"))


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def test_each_memory_is_proposed_by_itself(bring, project):
    bring(ABOUT, "Rye only.")
    first, second = entries()
    assert first.summary == "- **Work**\n- Olive runs a bakery in Bern.\n- She dislikes *wheat*."
    assert second.summary == "- Rye only."
    assert {(it.state, it.written_by, it.message_count) for it in (first, second)} == {
        (EntryStatus.PROPOSED, "claude", 1)
    }
    assert [(it.first_seq, it.last_seq) for it in (first, second)] == [(1, 1), (2, 2)]
    assert first.tokens > 10
    assert "bakery" not in rendered_bank(project).text


def test_a_deletion_that_is_undone_keeps_each_text(bring, project, owner):
    bring(ABOUT, "Rye only.")
    first, second = entries()
    entry_operations.edit(first, "- A baker in Bern.", owner)
    entry_operations.set_hidden(first, False, owner)
    delete_session(memories())
    restore_session(memories().pk)
    cycle.run(later())
    assert [(entry.summary, entry.state) for entry in entries()] == [
        ("- A baker in Bern.", EntryStatus.LIVE),
        ("- Rye only.", EntryStatus.PROPOSED),
    ]


def test_the_chat_keeps_its_title_if_a_memory_is_deleted(bring):
    bring("Rye only.", "Olive runs a bakery.")
    delete(memories().messages.order_by("seq")[0])
    assert memories().title == "Memories from Claude"


def test_the_messages_of_many_memories_are_read_once(bring):
    with CaptureQueriesContext(connection) as queries:
        bring(*(f"Olive bakes bread number {number}." for number in range(30)))
    assert len(entries()) == 30
    wanted = re.compile('SELECT .*"status".* FROM "chat_message"')
    read = [query for query in queries if wanted.match(query["sql"] or "")]
    assert len(read) < 10


def test_an_owner_approves_one_and_it_stands_in_the_bank(bring, project, owner, client):
    bring(ABOUT, "Rye only.")
    client.force_login(owner)
    page = client.get(PAGE).content.decode()
    waiting = page.partition("Needs review")[2].partition("</section>")[0]
    assert "Olive runs a bakery in Bern." in waiting
    first, second = entries()
    for entry, action in ((first, "approve"), (second, "reject")):
        decided = {"action": action, "entries": [entry.pk], "reason": "checked", "confirmed": "1"}
        assert client.post(f"{PAGE}act/", decided).status_code == 302
    first.refresh_from_db()
    assert first.state == EntryStatus.LIVE
    text = rendered_bank(project).text
    assert ": Olive runs a bakery in Bern." in text
    assert "Rye" not in text
    record = client.get(f"{PAGE}{first.pk}/").content.decode()
    assert "claude" in record
    assert str(memories().pk) in record


def test_a_second_import_adds_nothing(bring):
    bring(ABOUT, "Rye only.")
    before = [list(model.objects.values()) for model in (Entry, Cursor)]
    result = bring(ABOUT, "Rye only.")
    assert result.imported == 0
    assert [list(model.objects.values()) for model in (Entry, Cursor)] == before


def test_a_cycle_summarises_nothing_of_it(bring, project):
    bring(ABOUT, "Rye only.")
    cursor = Cursor.objects.get(session=memories())
    assert (cursor.summarised_through, cursor.unsummarised_messages) == (2, 0)
    report = cycle.run(later(), project)
    assert (report.summarised, report.skipped) == (1, 0)  # Of the conversation beside it.
    assert len(entries()) == 2


def test_a_new_memory_is_proposed_after_those_before(bring):
    bring(ABOUT)
    bring(ABOUT, "Rye only.")
    assert [(it.first_seq, it.last_seq) for it in entries()] == [(1, 1), (2, 2)]


def test_messages_between_imported_memories_are_summarised_without_a_gap(bring, project, owner):
    bring(ABOUT)
    post_message(memories(), "That is right, since March 2024.", author=owner)
    cycle.run(later(), project)
    bring(ABOUT, "Rye only.")
    assert [(it.first_seq, it.last_seq, it.written_by) for it in entries()] == [
        (1, 1, "claude"),
        (2, 2, "extractive"),
        (3, 3, "claude"),
    ]


def test_behind_what_waits_it_waits_to_be_summarised_too(bring, project, owner):
    bring(ABOUT)
    post_message(memories(), "That is right, since March 2024.", author=owner)
    bring(ABOUT, "Rye only.")
    assert Cursor.objects.get(session=memories()).unsummarised_messages == 2
    cycle.run(later(), project)
    assert [(it.first_seq, it.last_seq) for it in entries()] == [(1, 1), (2, 3)]


def test_deleted_messages_between_imported_memories_are_covered(bring, owner):
    bring(ABOUT)
    posted = post_message(memories(), "Never mind.", author=owner)
    delete(posted)
    bring(ABOUT, "Rye only.")
    assert [(it.first_seq, it.last_seq) for it in entries()] == [(1, 1), (2, 3)]


def test_where_nothing_is_remembered_nothing_is_proposed(bring, project):
    project.memory_enabled = False
    project.save()
    bring(ABOUT)
    assert memories().messages.count() == 1
    assert not Entry.objects.exists()


def test_a_long_memory_is_proposed_in_parts(bring):
    rests = "The rye dough rests for two hours in the cold room. " * 40
    bring("\n\n".join(f"{number}: {rests}" for number in range(6)))
    stored_entries = entries()
    assert len(stored_entries) == 3
    assert all(entry.tokens < 1_700 for entry in stored_entries)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One\n\n  Two", "- One\n- Two"),
        ("* a\n- b\n• c\n## d", "- a\n- b\n- c\n- d"),
        ("1. First\n2024. A year", "- 1. First\n- 2024. A year"),
        ("**Bold** stays", "- **Bold** stays"),
    ],
)
def test_lines_become_bullets(text, expected):
    assert as_text(from_text(text, date(2026, 3, 1))) == expected
