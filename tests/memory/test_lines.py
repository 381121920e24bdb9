"""Entries consist of lines; processes and texts from before there were lines still fit."""

from datetime import date, timedelta
from uuid import UUID

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.models import Message
from memory.layers import cycle, entry_text, lines
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import Line
from memory.models import Entry
from memory.moderation import entry_operations
from memory.portability.rows import ImportContext, adjust_text
from memory.prompt.receipt_sources import readable_sections
from projects.models import Membership
from tests.memory.recall_helpers import AT

pytestmark = pytest.mark.django_db

LATER = timezone.now() + timedelta(hours=3)


def test_each_line_of_a_conversation_has_its_message(chat, project):
    Message.objects.filter(session=chat, seq=1).update(text="The replica stays until 3 March 2026.")
    cycle.run(LATER, project)
    [entry] = Entry.objects.filter(session=chat)
    [line] = entry.read_lines()
    assert line.sources == (chat.messages.get(seq=1).pk,)
    assert line.day == AT.date() or line.day == date(2026, 3, 12)
    assert entry.summary == lines.as_text([line])


def test_a_process_from_before_replaces_the_lines_with_the_text(entry):
    entry.set_lines([Line("The replica stays.", entry.day, sources=(UUID(int=1),))])
    entry.save()
    Entry.objects.filter(pk=entry.pk).update(summary="- Another text.")
    entry.refresh_from_db()
    assert entry.lines == []
    assert [(line.text, line.sources) for line in entry.read_lines()] == [("Another text.", ())]


def test_an_edit_keeps_the_earlier_lines_as_a_revision(entry, owner):
    kept, lost = (
        Line(text, entry.day, sources=(UUID(int=number),)) for number, text in enumerate("ab", 1)
    )
    entry.set_lines([kept, lost])
    entry.save()
    entry = entry_operations.edit(entry, "a\nBy hand", owner)
    assert entry.summary == "a\nBy hand"
    assert [line.sources for line in entry.read_lines()] == [kept.sources, ()]
    [revision] = entry.revisions.all()
    assert lines.read(revision.lines, revision.summary, entry.day) == [kept, lost]


def test_other_days_of_the_same_lines_are_a_new_version(entry, project):
    days = (entry.day, entry.day - timedelta(days=40))
    old, new = ([Line("The replica stays.", day), Line("Ann owns it.", AT.date())] for day in days)
    entry.set_lines(old)
    entry.save()
    before = rendered_bank(project)
    entry_text.replace_text(entry, new, "scripted", LATER)
    entry.save()
    assert entry.revision == 2
    assert rendered_bank(project).text != before.text
    [revision] = entry.revisions.all()
    assert lines.read(revision.lines, revision.summary, entry.day) == old


def test_a_redaction_removes_the_words_from_every_line(entry, owner):
    entry.set_lines([Line("secret stays", entry.day, "Ana", (UUID(int=1),))])
    entry.save()
    entry_operations.edit(entry, "- no words\n- secret too", owner)
    entry = entry_operations.redact(entry, "secret", owner)
    [revision] = entry.revisions.filter(revision=1)
    assert "secret" not in f"{entry.lines} {revision.lines} {revision.summary}"
    assert lines.read(revision.lines, revision.summary, entry.day)[0].sources == (UUID(int=1),)


def test_a_redaction_removes_only_the_missing_details_with_the_words(entry, owner):
    kept = [{"kind": "name", "text": "Ana"}, {"kind": "more", "text": "12"}]
    entry = entry_operations.edit(entry, '"name" \\ of it\'s, name and 12', owner)
    entry.losses = [{"kind": "name", "text": 'The "name" \\ of it\'s'}, *kept]
    entry.save()
    entry = entry_operations.redact(entry, '"name" \\ of it\'s', owner)
    assert entry.losses == kept
    entry = entry_operations.redact(entry, "name", owner)
    assert entry_operations.redact(entry, "12", owner).losses == kept


@pytest.mark.parametrize(
    "rows",
    [
        None,
        3,
        "text",
        [3],
        {"text": "x"},
        [{"text": "Another", "day": "2026-03-12", "speaker": "", "sources": [], "score": 1}],
        [{"text": "x", "day": "yesterday", "speaker": "", "sources": [], "score": 1}],
        [{"text": "x", "day": "2026-03-12", "speaker": "", "sources": [3], "score": 1}],
        [{"text": "x", "day": "2026-03-12", "speaker": "", "sources": [], "score": float("nan")}],
        [{"text": "x", "day": "2026-03-12", "speaker": "", "sources": [], "score": 10**400}],
    ],
)
def test_lines_of_an_archive_that_are_not_those_of_the_text_are_left_out(project, entry, rows):
    entry.summary, entry.lines = "- x", rows
    adjust_text(entry, {}, ImportContext(project, {}))
    assert entry.lines == []


def test_lines_of_an_archive_have_the_new_ids_of_their_messages(project, entry):
    context = ImportContext(project, {}, {Message: {UUID(int=1)}})
    entry.set_lines([Line("x", entry.day, sources=(UUID(int=1), UUID(int=2)))])
    adjust_text(entry, {}, context)
    [line] = entry.read_lines()
    assert line.sources == (context.source_id(UUID(int=1)),)


@pytest.fixture
def linked(chat, entry):
    """The entry of a chat, with a line of its second message and one without a message."""
    entry.set_lines(
        [
            Line("It stays for seven days.", entry.day, sources=(chat.messages.get(seq=2).pk,)),
            Line("Something else.", entry.day),
        ]
    )
    entry.save()
    return entry


def test_the_page_of_an_entry_leads_from_each_line_to_its_message(client, owner, linked, chat):
    client.force_login(owner)
    page = client.get(reverse("entry", args=["billing", linked.pk])).content.decode()
    line = page.partition("It stays for seven days.")[2].partition("</li>")[0]
    assert f"{chat.pk}/?through=2#m2" in line
    assert "no source" in page.partition("Something else.")[2].partition("</li>")[0]


def test_the_api_names_the_messages_of_each_line(api, owner, linked, chat):
    client = api(owner)
    address = f"/api/v1/projects/billing/memory/entries/{linked.pk}/"
    expected = [([str(chat.messages.get(seq=2).pk)], 1), ([], 0)]
    for path in (address, "/api/v1/projects/billing/memory/entries/"):
        data = client.get(path).json()
        [found] = data.get("results", [data])
        assert [(line["messages"], line["sources"]) for line in found["lines"]] == expected
    [text] = client.get(f"{address}revisions/").json()
    assert [line["messages"] for line in text["lines"]] == [pks for pks, _ in expected]


def test_messages_of_a_private_chat_are_only_counted(api, client, owner, linked, chat):
    chat.visibility = "private"
    chat.save()
    client.force_login(owner)
    [line, _] = (
        api(owner).get(f"/api/v1/projects/billing/memory/entries/{linked.pk}/").json()["lines"]
    )
    assert (line["messages"], line["sources"]) == ([], 1)
    page = client.get(reverse("entry", args=["billing", linked.pk])).content.decode()
    assert "and 1 other message" in page and "#m2" not in page


def test_the_receipt_of_a_reply_leads_to_the_messages_of_each_line(client, owner, linked, chat):
    member = Membership.objects.get(project=linked.project, user=owner)
    item = {"id": str(linked.pk), "kind": "conversation", "revision": 1, "tokens": 9, "label": ""}
    receipt = {"sections": [{"name": "bank", "tokens": 9, "items": [item]}]}
    [section] = readable_sections(receipt, member)
    [source] = section.sources
    assert [len(line.messages) for line in source.lines] == [1, 0]
