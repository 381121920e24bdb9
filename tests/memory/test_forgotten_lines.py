"""A forgotten message takes its lines along at once; all other lines stay as they are."""

import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message, Session
from memory.forgetting.service import ForgetScope, forget, preview
from memory.layers import coverage, cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import summarise
from memory.layers.history import entry_as_of
from memory.layers.lines import Line
from memory.layers.pending import count_awaiting_rewrite
from memory.layers.statistics import particulars_by_layer
from memory.models import Activity, Chunk, Entry, EntryStatus
from memory.moderation import entry_operations
from tests.memory.daily_entries import remember

pytestmark = pytest.mark.django_db

START = datetime(2025, 3, 3, 9, tzinfo=UTC)


def talk_about(project, owner, day: int, texts: list[str]) -> Session:
    session = create_session(project, owner, title=f"Day {day}")
    at = START + timedelta(days=day)
    drafts = [
        draft(text, author=owner, created_at=at + timedelta(minutes=place))
        for place, text in enumerate(texts)
    ]
    post_messages(session, drafts)
    Session.objects.filter(pk=session.pk).update(last_activity_at=at)
    return session


@pytest.fixture
def written(project, owner, scripted):
    """An entry that a model wrote: of the first message, of the first two, and of the third."""
    texts = ["The vault is in Bern.", "Ben has the key.", "The cutover is on 3 March."]
    session = talk_about(project, owner, 0, texts)
    bullets = [
        {"text": "The vault is in Bern.", "lines": [1]},
        {"text": "Ben holds the key to it.", "lines": [1, 2]},
        {"text": "The cutover is on 3 March.", "lines": [3]},
    ]
    scripted.say(json.dumps({"summary": bullets, "facts": []}))
    return summarise(session.pk, START + timedelta(days=1))


def message(entry: Entry, seq: int) -> Message:
    return Message.objects.get(session=entry.session_id, seq=seq)


def texts(entry: Entry) -> list[str]:
    return [line.text for line in Entry.objects.get(pk=entry.pk).read_lines()]


def test_a_line_of_one_message_goes_without_a_rewrite(written, project, scripted):
    receipt = forget(project, ForgetScope(message=message(written, 3).pk))
    assert (receipt.removed["lines"], receipt.awaiting_rewrite) == (1, 0)
    assert texts(written) == ["The vault is in Bern.", "Ben holds the key to it."]
    cycle.run(START + timedelta(days=2))
    assert len(scripted.requests) == 1


def test_a_line_of_several_messages_goes_and_the_entry_is_rewritten(written, project, scripted):
    receipt = forget(project, ForgetScope(message=message(written, 1).pk))
    assert (receipt.removed["lines"], receipt.awaiting_rewrite) == (2, 1)
    assert texts(written) == ["The cutover is on 3 March."]
    assert "cutover" in rendered_bank(project).text
    scripted.say("- Ben has the key. [1]\n- The cutover is on 3 March. [2]")
    cycle.run(START + timedelta(days=2))
    written.refresh_from_db()
    assert (written.state, texts(written)[0]) == (EntryStatus.LIVE, "Ben has the key.")


def test_a_statement_is_quoted_again_without_its_forgotten_correction(project, owner):
    statement = "The review of the contract is on Monday at 10."
    session = talk_about(project, owner, 0, [statement, "No wait, it's Tuesday.", "Ana has a key."])
    cycle.run(START + timedelta(days=1))
    entry = session.entries.get()
    assert f"{statement} … No wait, it's Tuesday." in texts(entry)
    entry.set_lines([*entry.read_lines(), Line("A key.", entry.day, "olive", (uuid4(),))])
    entry.save()
    receipt = forget(project, ForgetScope(message=message(entry, 2).pk))
    assert (receipt.removed["lines"], receipt.awaiting_rewrite) == (1, 1)
    assert texts(entry) == ["A key."]
    cycle.run(START + timedelta(days=2))
    assert statement in texts(entry)


def test_a_line_that_states_more_than_its_messages_goes_too(written, project):
    last = {**written.lines[-1], "text": "The cutover is on 3 March, from Bern."}
    Entry.objects.filter(pk=written.pk).update(lines=[*written.lines[:2], last], summary="- x")
    forget(project, ForgetScope(message=message(written, 1).pk))
    assert "Bern" not in str(Entry.objects.get(pk=written.pk).lines)


def test_a_line_without_messages_withholds_the_entry(written, project):
    rows = [
        {**row, "sources": []} if place == 2 else row for place, row in enumerate(written.lines)
    ]
    Entry.objects.filter(pk=written.pk).update(lines=rows)
    forget(project, ForgetScope(message=message(written, 2).pk))
    written.refresh_from_db()
    assert (written.withheld, written.summary, written.lines) == (True, "", [])


@pytest.fixture
def quoted(project, owner):
    """An entry that quotes both messages of its chat."""
    texts = ["The vault is in Bern since 2019.", "We decided that Ana owns billing."]
    session = talk_about(project, owner, 0, texts)
    cycle.run(START + timedelta(days=1))
    [entry] = session.entries.all()
    messages = session.messages.order_by("seq")
    entry.set_lines([Line(it.text, entry.day, "olive", (it.pk,)) for it in messages])
    entry.save()
    return entry


def test_earlier_texts_go_if_their_lines_name_no_message(quoted, project, owner):
    entry = entry_operations.edit(quoted, f"{quoted.summary}\n- By hand", owner)
    entry = entry_operations.edit(entry, "- olive: “We decided that Ana owns billing.”", owner)
    forget(project, ForgetScope(message=message(entry, 1).pk))
    [revision] = entry.revisions.all()
    assert (revision.revision, len(revision.lines)) == (1, 1)


def test_a_past_moment_shows_the_lines_that_are_left(quoted, project):
    forget(project, ForgetScope(message=message(quoted, 1).pk))
    past = entry_as_of(quoted, START + timedelta(days=2))
    assert past is not None and past.summary is not None
    assert "billing" in past.summary and "Bern" not in past.summary


def test_the_path_of_a_chat_is_read_once_for_all_its_entries(project, owner, editor):
    session = talk_about(project, owner, 0, [f"Step {n} is on 3 March." for n in range(12)])
    Message.objects.filter(seq__in=range(2, 13, 2)).update(author=editor, author_name="editor")
    for seq in range(1, 13, 2):
        messages = coverage.read_range(session, seq - 1, seq + 1)
        quotations = [
            Line(it.text, it.created_at.date(), "owner", (it.pk,)) for it in messages.contributing
        ]
        coverage.new_entry(session, messages, quotations, "extractive", START).save()
    with CaptureQueriesContext(connection) as queries:
        assert particulars_by_layer(project)["conversation"].entries == 6
        assert forget(project, ForgetScope(user=editor.pk)).removed["lines"] == 6
    path = re.compile(
        r'SELECT "chat_message"."id"[^,]*, "chat_message"."parent_id"[^,]*, "\S*seq" '
    )
    assert len([query for query in queries if path.match(query["sql"] or "")]) == 2


def test_a_preview_changes_no_line(written, project):
    receipt = preview(project, ForgetScope(message=message(written, 1).pk))
    assert receipt.removed["lines"] == 2
    assert len(texts(written)) == 3
    assert not Chunk.objects.filter(text__contains="forgotten").exists()


def test_an_entry_that_only_lost_lines_waits_for_its_rewrite(written, project):
    receipt = forget(project, ForgetScope(message=message(written, 1).pk))
    assert (receipt.withheld, receipt.rewrites) == ([], [written.pk])
    act = Activity.objects.get(pk=receipt.id)
    assert count_awaiting_rewrite(act) == 1
    Entry.objects.filter(pk=written.pk).update(state=EntryStatus.LIVE)
    assert count_awaiting_rewrite(act) == 0


def test_entries_that_a_receipt_does_not_list_are_awaited_too(project, owner):
    listed, other = (remember(project, owner, f"- Step {number}") for number in range(2))
    receipt = {"awaiting_rewrite": 2, "rewrites": [str(listed.pk)]}
    act = Activity.objects.create(project=project, verb="forgotten", receipt=receipt)
    Entry.objects.filter(pk=other.pk).update(state=EntryStatus.STALE)
    assert count_awaiting_rewrite(act) == 1
    Entry.objects.filter(pk=other.pk).update(state=EntryStatus.LIVE)
    assert count_awaiting_rewrite(act) == 0
