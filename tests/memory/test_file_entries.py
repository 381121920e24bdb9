"""Entries of files: written, rolled up, rewritten with a new version, and forgotten."""

import io
import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.conversations.edits import edit
from chat.conversations.messages import ask, draft, post_messages
from chat.conversations.sessions import create_session, delete_session, restore_session
from chat.importers import FileResult, import_file
from chat.models import Message, Role, Session, Visibility
from memory.files import processing, summaries
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle
from memory.layers.lines import from_json
from memory.models import (
    Activity,
    Chunk,
    Entry,
    EntryRevision,
    EntryStatus,
    FilePassage,
    FileRevision,
    ReviewReason,
    SourceType,
)
from memory.portability import ExportScope, export
from memory.recall import indexing
from projects.models import Project
from projects.services import create_project
from tests.memory.file_helpers import MANUAL, add_read

pytestmark = pytest.mark.django_db

CANARY = "Quexlar"
SECRET = (
    f"# {CANARY} press\n\nThe {CANARY} press needs nine litres of oil each month of the year.\n"
)


@pytest.fixture
def small_bank(project):
    """Let the entries exceed the budget, so that they roll up into a digest after a day."""
    Project.objects.filter(pk=project.pk).update(bank_max_tokens=1)
    project.refresh_from_db()


def run_cycle(project, days: float = 0):
    return cycle.run(timezone.now() + timedelta(days=days), project)


def entry_of(document) -> Entry:
    return Entry.objects.get(file__document=document)


def texts(entry: Entry) -> str:
    return "\n".join(line.text for line in from_json(entry.lines))


def visit(project, user, name: str, *args) -> str:
    client = Client()
    client.force_login(user)
    return client.get(reverse(name, args=[project.slug, *args])).content.decode()


def everything() -> str:
    """Return all rows of all tables as text."""
    rows = (row for model in apps.get_models() for row in model._default_manager.values())
    return "\n".join(str(row) for row in rows)


def test_a_file_gets_an_entry_whose_lines_lead_to_its_passages(project, owner):
    document = add_read(project, owner)
    assert run_cycle(project).rewritten == 1
    entry = entry_of(document)
    assert (entry.state, entry.withheld, entry.session) == (EntryStatus.LIVE, False, None)
    about, *quotes = from_json(entry.lines)
    assert about.text == "manual.md – Pump P-40 – Maintenance; Storage"
    assert any("forty litres" in line.text for line in quotes)
    sources = {source for line in (about, *quotes) for source in line.sources}
    assert FilePassage.objects.filter(pk__in=sources).count() == len(sources) > 0
    page = visit(project, owner, "entry", entry.pk)
    assert f"/files/{document.pk}/?version=1&amp;at=1#p1" in page
    assert "0 messages" not in page
    assert run_cycle(project).rewritten == 0


def test_the_activity_says_which_file_was_summarised(project, owner):
    document = add_read(project, owner, session=create_session(project, owner, title="Pumps"))
    run_cycle(project)
    entry = entry_of(document)
    page = " ".join(visit(project, owner, "memory-activity").split())
    link = f'href="{reverse("entry", args=[project.slug, entry.pk])}">{document.name}<'
    assert f'</b> summarised <i class="dot c-conversation"></i> <a {link}' in page
    assert "</b> summarised the file" in visit(project, owner, "entry", entry.pk)
    add_read(project, owner, text="A new version.", session=document.session)
    run_cycle(project)
    verbs = Activity.objects.filter(entry_id=entry.pk).values_list("verb", flat=True)
    assert sorted(verbs) == ["rewritten", "summarised"]


def test_the_first_layer_is_named_after_what_it_has(project, owner, editor):
    assert "Chats and files" not in visit(project, owner, "memory")
    entry = entry_of(add_read(project, owner))
    run_cycle(project)
    page = visit(project, owner, "memory")
    assert "Chats and files" in page and "conversation</" not in page
    drawer = " ".join(visit(project, owner, "entry", entry.pk).split())
    assert '<i class="dot c-conversation"></i> File </span>' in drawer


def test_the_api_names_the_file_of_an_entry(api, project, owner):
    document = add_read(project, owner)
    run_cycle(project)
    [row] = api(owner).get("/api/v1/projects/billing/memory/entries/").json()["results"]
    assert (row["file"], row["covers"], row["message_count"]) == (str(document.pk), None, 0)
    assert api(owner).get("/api/v1/projects/billing/sessions/").json()["results"] == []


def test_a_model_summarises_a_file_from_its_passages(project, owner, scripted):
    document = add_read(project, owner)
    bullet = {"text": "The seal is replaced every nine months.", "lines": [2]}
    scripted.say(json.dumps({"summary": [bullet], "facts": []}))
    run_cycle(project)
    _about, line = from_json(entry_of(document).lines)
    assert line.text == bullet["text"]
    [source] = FilePassage.objects.filter(pk__in=line.sources)
    assert "impeller seal" in source.text
    assert "Pump P-40 › Maintenance" in str(scripted.requests[0])


def test_a_failure_is_shown_with_the_file_and_tried_again(project, owner, scripted):
    document = add_read(project, owner)
    scripted.status(500)
    assert run_cycle(project).rewritten == 0
    revision = document.revisions.get()
    assert revision.last_error and revision.next_try_at
    assert "The summary could not be written yet" in visit(project, owner, "files")
    assert run_cycle(project).rewritten == 0
    FileRevision.objects.update(next_try_at=None)
    scripted.default = lambda request: json.dumps({"summary": ["A pump."], "facts": []})
    assert run_cycle(project).rewritten == 1


def test_the_summariser_reads_the_beginning_and_samples_of_the_rest():
    assert summaries.sample(3, 450) == [1, 2, 3]
    for count in (40, 41, 700, 30_000):
        numbers = summaries.sample(count, 450)
        assert numbers[:10] == list(range(1, 11))
        assert len(set(numbers)) == len(numbers) <= 40
        assert count * 0.9 < numbers[-1] <= count


def test_the_summariser_reads_more_of_short_turns():
    assert 90 < len(summaries.sample(700, 150)) <= 106
    assert 170 < len(summaries.sample(700, 1)) <= 200


def test_a_forgotten_file_leaves_the_digests_in_the_same_transaction(small_bank, project, owner):
    document = add_read(project, owner, "press.md", SECRET)
    kept = add_read(project, owner)
    run_cycle(project)
    run_cycle(project, days=2)
    [digest] = Entry.objects.filter(granularity="day")
    assert CANARY in digest.summary and "P-40" in digest.summary
    indexing.catch_up()
    assert not Chunk.objects.filter(source_type=SourceType.ENTRY).exists()
    assert CANARY in everything()
    receipt = forget(project, ForgetScope(file=document.pk), owner)
    assert receipt.removed["entries"] == 1 and receipt.removed["lines"] > 0
    digest.refresh_from_db()
    assert "P-40" in digest.summary and not digest.withheld
    assert entry_of(kept).state == EntryStatus.ABSORBED
    assert CANARY not in everything()


def test_digests_that_a_model_wrote_lose_what_only_the_file_says(
    small_bank, project, owner, scripted
):
    document = add_read(project, owner, "press.md", SECRET)
    add_read(project, owner)
    for text in (f"The {CANARY} needs oil.", "The P-40 needs a seal."):
        scripted.say(json.dumps({"summary": [{"text": text, "lines": [1]}], "facts": []}))
    run_cycle(project)
    scripted.say(f"- The P-40 and the {CANARY} need care. [2]\n- The P-40 needs a seal. [2]")
    run_cycle(project, days=2)
    [digest] = Entry.objects.filter(granularity="day")
    assert CANARY in digest.summary
    forget(project, ForgetScope(file=document.pk), owner)
    digest.refresh_from_db()
    assert CANARY not in everything()
    assert digest.withheld or "seal" in digest.summary


def test_chats_that_quote_a_forgotten_file_lose_it_in_all_layers(small_bank, project, owner):
    document = add_read(project, owner, "press.md", SECRET)
    add_read(project, owner)
    [passage] = FilePassage.objects.filter(revision__document=document)
    items = [{"id": str(passage.pk), "kind": "file", "revision": 1, "tokens": 30}]
    receipt = {"sections": [{"name": "files", "tokens": 30, "items": items}]}
    session = create_session(project, owner)
    text = f"The {CANARY} press needs nine litres of oil each month of the year."
    messages = [draft("Oil?", author=owner), draft(text, role=Role.ASSISTANT)]
    _question, reply = post_messages(session, messages)
    Message.objects.filter(pk=reply.pk).update(receipt=receipt)
    run_cycle(project, days=1)
    assert CANARY in session.entries.get(first_seq=1).summary
    run_cycle(project, days=3)
    [digest] = Entry.objects.filter(granularity="day")
    quoting = [line for line in from_json(digest.lines) if CANARY in line.text]
    assert {reply.pk, passage.pk} <= {source for line in quoting for source in line.sources}
    forget(project, ForgetScope(file=document.pk, replies=True), owner)
    assert CANARY not in everything()
    digest.refresh_from_db()
    assert "P-40" in digest.summary and not digest.withheld


def test_another_search_language_does_not_summarise_earlier_versions(project, owner):
    add_read(project, owner)
    document = add_read(project, owner, text="A new version.")
    run_cycle(project)
    before = entry_of(document)
    project.search_language = "german"
    project.save()
    processing.catch_up(60)
    after = entry_of(document)
    assert (after.state, after.file_id) == (EntryStatus.LIVE, before.file_id)
    chunks = Chunk.objects.filter(source_type=SourceType.FILE)
    assert set(chunks.values_list("source", "language")) == {(before.file_id, "german")}


def test_a_new_version_rewrites_the_entry_and_the_digest(small_bank, project, owner):
    document = add_read(project, owner)
    add_read(project, owner, "press.md", SECRET)
    run_cycle(project)
    run_cycle(project, days=2)
    add_read(project, owner, text=MANUAL.replace("forty", "fifty"))
    entry = entry_of(document)
    assert (entry.state, entry.withheld) == (EntryStatus.STALE, False)
    assert "forty litres" in texts(entry)
    run_cycle(project, days=3)
    entry.refresh_from_db()
    assert "fifty litres" in texts(entry) and "forty litres" not in texts(entry)
    assert EntryRevision.objects.filter(entry=entry).count() == 1
    assert "fifty litres" in Entry.objects.get(granularity="day").summary
    assert Entry.objects.filter(granularity="conversation").count() == 2


def test_an_entry_is_forgotten_without_its_file_and_not_written_again(small_bank, project, owner):
    document = add_read(project, owner, "press.md", SECRET)
    add_read(project, owner)
    run_cycle(project)
    run_cycle(project, days=2)
    forget(project, ForgetScope(entry=entry_of(document).pk), owner)
    assert CANARY not in str(list(Entry.objects.values("summary", "lines", "losses")))
    add_read(project, owner, "press.md", f"{SECRET} Again.")
    run_cycle(project, days=3)
    assert not Entry.objects.filter(file__document=document).exists()
    assert document.revisions.exists()


def test_a_file_of_a_private_chat_makes_no_memory_of_others(project, owner, editor):
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    document = add_read(project, owner, session=private)
    run_cycle(project)
    entry = entry_of(document)
    assert (entry.state, entry.waits_because) == (EntryStatus.PROPOSED, ReviewReason.PRIVATE)
    assert entry.label.endswith("a private chat")
    assert "forty litres" in visit(project, owner, "entry", entry.pk)
    assert "forty litres" not in visit(project, editor, "entry", entry.pk)


def test_a_chat_that_is_not_remembered_has_files_without_entries(project, owner):
    session = create_session(project, owner)
    Session.objects.filter(pk=session.pk).update(remembered=False)
    session.refresh_from_db()
    add_read(project, owner, session=session)
    assert not Entry.objects.exists()


def test_the_entry_of_a_file_follows_its_chat(project, owner, scripted):
    session = create_session(project, owner)
    document = add_read(project, owner, session=session)
    scripted.default = lambda request: json.dumps({"summary": ["A pump."], "facts": []})
    run_cycle(project)
    assert entry_of(document).state == EntryStatus.LIVE
    delete_session(session)
    assert entry_of(document).withheld
    assert run_cycle(project).rewritten == 0
    restore_session(session.pk)
    assert run_cycle(project).rewritten == 1
    entry = entry_of(document)
    assert (entry.state, entry.withheld) == (EntryStatus.LIVE, False)
    assert len(scripted.requests) == 1


def test_messages_of_a_chat_with_a_file_are_summarised_as_before(project, owner):
    session = create_session(project, owner)
    add_read(project, owner, session=session)
    message, _reply = ask(session, "We decided that Ana owns the billing of the pumps.", owner)
    Message.objects.filter(session=session).update(status="complete")
    run_cycle(project, days=1)
    assert sorted(session.entries.values_list("first_seq", flat=True), key=str) == [1, None]
    assert "Ana owns" in visit(project, owner, "session-remember", session.pk)
    edit(message, "We decided that Ben owns the billing of the pumps.", owner)
    run_cycle(project, days=1)
    assert "Ben owns" in session.entries.get(first_seq=1).summary
    assert "P-40" in session.entries.get(first_seq=None).summary


def test_without_memory_a_file_waits_for_its_entry(project, owner):
    Project.objects.filter(pk=project.pk).update(memory_enabled=False)
    document = add_read(project, owner)
    assert run_cycle(project).rewritten == 0
    Project.objects.filter(pk=project.pk).update(memory_enabled=True)
    assert run_cycle(project).rewritten == 1
    assert "P-40" in entry_of(document).summary


@pytest.mark.django_db(transaction=True)
def test_an_export_brings_entries_of_files_along(project, owner, editor):
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    document = add_read(project, owner)
    add_read(project, owner, "press.md", SECRET, session=private)
    run_cycle(project)
    file = io.BytesIO()
    assert export(ExportScope(project), file)["entries"] == 2
    assert export(ExportScope(project, viewer=editor), io.BytesIO())["entries"] == 1
    new = create_project(owner, name="Copy")
    import_file(new, owner, "export.zip", file, "auto", result=FileResult())
    copy = Entry.objects.get(project=new, file__document__name=document.name)
    assert copy.summary == entry_of(document).summary
    sources = {source for line in from_json(copy.lines) for source in line.sources}
    found = FilePassage.objects.filter(project=new, revision=copy.file, pk__in=sources)
    assert found.count() == len(sources) > 0
