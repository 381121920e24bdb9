"""Notes are recalled for all members at once and summarised like messages."""

from datetime import UTC, datetime, timedelta
from io import BytesIO

import pytest

from chat.conversations import edits, notes, sessions
from chat.conversations.messages import post_message
from chat.exporters import export
from chat.importers import import_file
from chat.models import Message, Session, Visibility
from chat.prompt.builder import Turn, build
from memory import portability
from memory.forgetting.service import ForgetScope, forget
from memory.layers.bank_cache import rendered_bank
from memory.layers.conversations import summarise
from memory.models import Chunk, Entry, IndexCursor, SourceType
from memory.recall import RecallScope, indexing, recall
from projects.services import create_project
from tests.memory.recall_helpers import AT, recalled_texts, talk

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover to the new database is on the third of March."
BILLING = "The platform team owns billing from now on."
QUESTION = "When is the cutover to the new database?"


def note(project, user, *texts: str, at=AT) -> list[Message]:
    """Notes a minute apart, indexed."""
    added = [
        notes.add_note(project, user, text, at + timedelta(minutes=number))
        for number, text in enumerate(texts)
    ]
    indexing.catch_up()
    return added


def later() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


def chunks() -> list[tuple[str, int, int, str]]:
    rows = Chunk.objects.order_by("first_seq", "part")
    return list(rows.values_list("source_type", "first_seq", "last_seq", "text"))


def test_each_note_is_a_chunk_of_its_own_however_short(project, owner):
    note(project, owner, CUTOVER, BILLING, "Wifi: fig")
    assert chunks() == [
        ("note", 1, 1, CUTOVER),
        ("note", 2, 2, BILLING),
        ("note", 3, 3, "Wifi: fig"),
    ]


def test_a_long_note_is_split(project, owner):
    note(project, owner, "It is as it was before. " * 100)
    parts = Chunk.objects.order_by("part")
    assert len(parts) > 1
    assert {(part.source_type, part.first_seq, part.last_seq) for part in parts} == {("note", 1, 1)}
    assert [part.part for part in parts] == [*range(len(parts))]


def test_indexing_twice_writes_nothing(project, owner):
    note(project, owner, CUTOVER, BILLING)
    talk(project, owner, "A chat beside them says something too.")
    before = set(Chunk.objects.values_list("pk", flat=True))
    IndexCursor.objects.update(wanted=9, done=4, dirty_from=1)
    assert indexing.catch_up().chunks == 0
    assert set(Chunk.objects.values_list("pk", flat=True)) == before


def test_a_note_is_found_as_soon_as_it_is_written(
    project, owner, viewer, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        written = notes.add_note(project, owner, CUTOVER)
    assert recalled_texts(project, viewer, QUESTION) == [CUTOVER]
    with django_capture_on_commit_callbacks(execute=True):
        notes.edit_note(written, BILLING, owner)
    assert recalled_texts(project, viewer, "Who owns billing?") == [BILLING]
    assert not IndexCursor.objects.due().exists()


def test_a_note_waits_for_no_server_that_embeds(
    project, owner, settings, django_capture_on_commit_callbacks
):
    settings.EMBEDDER, settings.EMBEDDING_DIMENSIONS = "openai:text-embedding-3-small", 64
    with django_capture_on_commit_callbacks(execute=True):
        notes.add_note(project, owner, CUTOVER)
    assert IndexCursor.objects.due().exists()


def test_a_note_is_found_by_everybody_where_turns_are_not_shared(project, owner, editor, viewer):
    note(project, editor, CUTOVER)
    talk(project, editor, "The cutover of the old database was in May.")
    assert not project.share_raw_turns
    for user in (owner, viewer):
        assert (
            recalled_texts(project, user, QUESTION)
            == recalled_texts(project, user, "")
            == [CUTOVER]
        )
    assert recalled_texts(project, owner, QUESTION, shared_only=True) == [CUTOVER]
    assert recalled_texts(project, None, QUESTION, shared_only=True) == [CUTOVER]


def test_private_notes_are_found_by_their_author_alone(project, owner, editor):
    [noted_entry] = note(project, editor, CUTOVER)
    sessions.update_session(noted_entry.session, visibility=Visibility.PRIVATE)
    assert recalled_texts(project, owner, QUESTION) == []
    assert recalled_texts(project, owner, QUESTION, shared_only=True) == []
    assert recalled_texts(project, editor, QUESTION, shared_only=True) == []
    assert recalled_texts(project, editor, QUESTION) == [CUTOVER]


def test_notes_of_a_deleted_session_are_not_found(project, owner):
    [noted_entry] = note(project, owner, CUTOVER)
    sessions.delete_session(noted_entry.session)
    assert recalled_texts(project, owner, QUESTION) == []
    sessions.restore_session(noted_entry.session_id)
    assert recalled_texts(project, owner, QUESTION) == [CUTOVER]


def test_recall_filters_by_source(project, owner, api):
    note(project, owner, CUTOVER)
    text = "The cutover of the old database was in May."
    talk(project, owner, text)
    assert recalled_texts(project, owner, QUESTION, source_types=[SourceType.NOTE]) == [CUTOVER]
    assert recalled_texts(project, owner, QUESTION, source_types=[SourceType.TURN]) == [text]
    url = "/api/v1/projects/billing/recall/?q=cutover&source=note"
    [result] = api(owner).get(url).json()["results"]
    assert (result["text"], result["source_type"], result["speaker"]) == (CUTOVER, "note", "olive")


def test_the_prompt_of_anothers_chat_quotes_it(project, owner, editor):
    note(project, editor, CUTOVER)
    session = Session.objects.create(project=project, creator=owner)
    question = post_message(session, QUESTION, author=owner)
    details = {section.name: section for section in build(Turn(session, question)).sections}[
        "details"
    ]
    assert CUTOVER in details.messages[0].text


def test_text_beside_a_note_does_not_support_it(project, owner):
    printer = "The printer on the second floor jams on Mondays."
    note(project, owner, *[printer] * 4, CUTOVER, *[printer] * 4)
    best, *others = recall(RecallScope(project, owner), QUESTION)
    assert best.text == CUTOVER
    assert len(others) == 8 and len({other_item.score for other_item in others}) == 1


def test_an_edit_is_out_of_recall_at_once_and_back_with_its_new_text(project, owner):
    first, second = note(project, owner, CUTOVER, BILLING)
    edits.edit(first, "The cutover to the new database is on the fourth of March.", owner)
    assert [text for *_, text in chunks()] == [BILLING]
    indexing.catch_up()
    assert recalled_texts(project, owner, QUESTION)[0].endswith("fourth of March.")
    assert chunks()[1] == ("note", 2, 2, BILLING)


def test_a_deleted_note_is_out_of_recall(project, owner):
    first, second = note(project, owner, CUTOVER, BILLING)
    edits.delete(first)
    assert [text for *_, text in chunks()] == [BILLING]
    indexing.catch_up()
    assert [text for *_, text in chunks()] == [BILLING]


def test_notes_settle_into_the_bank(project, owner, settings):
    settings.SYSTEM_MODEL = "extractive"
    [first, _] = note(project, owner, CUTOVER, BILLING)
    entry = summarise(first.session_id, later())
    assert (entry.first_seq, entry.last_seq, entry.message_count) == (1, 2, 2)
    assert "third of March" in rendered_bank(project, project.bank_max_tokens).text


def test_where_nothing_is_remembered_notes_are_not(project, owner):
    project.memory_enabled = False
    project.save()
    note(project, owner, CUTOVER)
    assert chunks() == []


def test_a_forgotten_note_is_gone_for_good_and_the_others_stay(project, owner, settings):
    settings.SYSTEM_MODEL = "extractive"
    first, second = note(project, owner, CUTOVER, BILLING)
    summarise(first.session_id, later())
    receipt = forget(project, ForgetScope(message=first.pk), owner)
    assert receipt.removed["messages"] == 1
    assert [item.text for item in notes.notes_for(owner, project)] == [BILLING]
    assert "third of March" not in rendered_bank(project, project.bank_max_tokens).text
    assert "March" not in str(Entry.objects.values_list("summary", flat=True))
    indexing.catch_up()
    assert sorted(text for *_, text in chunks()) == [f"- olive: “{BILLING}”", BILLING]


def test_forgetting_a_user_deletes_their_notes_and_a_new_note_starts_a_session(
    project, owner, editor
):
    [noted_entry] = note(project, editor, CUTOVER)
    forget(project, ForgetScope(user=editor.pk), owner)
    assert not Session.objects.filter(pk=noted_entry.session_id).exists()
    assert chunks() == []
    assert notes.add_note(project, editor, BILLING).seq == 1


def test_an_import_does_not_bring_a_forgotten_note_back(project, owner):
    first, _ = note(project, owner, CUTOVER, BILLING)
    first.session.refresh_from_db()
    file = b"".join(export(first.session, "json"))
    forget(project, ForgetScope(message=first.pk), owner)
    import_file(project, owner, "notes.json", BytesIO(file), "strata")
    assert [item.text for item in notes.notes_for(owner, project)] == [BILLING]


def test_the_search_page_finds_it_and_leads_to_it(client, project, editor, viewer):
    _, second_entry = note(project, editor, BILLING, CUTOVER)
    client.force_login(viewer)
    page = client.get("/projects/billing/search/", {"q": QUESTION}).content.decode()
    link = f"/projects/billing/chats/{second_entry.session_id}/?through=2"
    assert f"{link}#m2" in page
    assert (
        client.get(link).url
        == f"/projects/billing/notes/?at={second_entry.pk}#note-{second_entry.pk}"
    )


@pytest.mark.django_db(transaction=True)
def test_a_project_that_is_taken_along_keeps_its_notes(project, owner):
    note(project, owner, CUTOVER)
    file = BytesIO()
    portability.export(portability.ExportScope(project, owner), file)
    elsewhere = create_project(owner, name="Elsewhere")
    import_file(elsewhere, owner, "billing.zip", file)
    indexing.catch_up()
    assert recalled_texts(elsewhere, owner, QUESTION, source_types=[SourceType.NOTE]) == [CUTOVER]
    assert notes.add_note(elsewhere, owner, BILLING).seq == 2


def test_links_of_the_layers_lead_to_the_note(client, project, owner, settings):
    settings.SYSTEM_MODEL = "extractive"
    first, _ = note(project, owner, CUTOVER, BILLING)
    entry = summarise(first.session_id, later())
    client.force_login(owner)
    page = client.get(f"/projects/billing/memory/{entry.pk}/").content.decode()
    link = f"/projects/billing/chats/{first.session_id}/?through=1"
    assert f"{link}#m1" in page
    assert client.get(link).url == f"/projects/billing/notes/?at={first.pk}#note-{first.pk}"
