"""Recall finds summaries too, for all members of a project."""

from uuid import UUID, uuid4

import pytest

from chat.models import Session, Visibility
from chat.prompt.preview import preview
from memory.forgetting.service import ForgetScope, forget
from memory.layers import conversations
from memory.models import Chunk, EntriesChanged, Entry, EntryStatus, SourceType
from memory.moderation import entry_operations
from memory.recall import (
    RecallScope,
    chunk_writer,
    embedders,
    indexing,
    recall,
    reindexing,
    summaries,
)
from memory.recall.embedders import EmbedderError
from projects.models import Project
from tests.memory.recall_helpers import AT, talk

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover to the new database is on the third of March."
QUESTION = "When is the cutover to the new database?"


@pytest.fixture
def entry(project, owner):
    """The summary of a private chat of the owner's, which no longer stands in the bank."""
    project.system_model = "extractive"
    project.save()
    session = talk(project, owner, CUTOVER, visibility=Visibility.PRIVATE)
    summary = conversations.summarise(session.pk, AT, force=True)
    entry_operations.set_hidden(summary, hidden=False, by=owner)
    digest = Entry.objects.create(
        project=project,
        granularity="day",
        period_key="2026-03-01",
        zone="UTC",
        summary="- A day.",
        tokens=5,
        message_count=1,
        first_source_at=AT,
        last_source_at=AT,
        written_by="test",
    )
    Entry.objects.filter(pk=summary.pk).update(state=EntryStatus.ABSORBED, parent=digest)
    indexing.catch_up()
    summary.refresh_from_db()
    return summary


def recalled_texts(project, user) -> list[str]:
    scope = RecallScope(project, user, source_types=[SourceType.ENTRY])
    return [result.text for result in recall(scope, QUESTION)]


def section_texts(project, user, visibility=Visibility.PRIVATE) -> dict[str, str]:
    session = Session.objects.create(project=project, creator=user, visibility=visibility)
    sections = preview(session, QUESTION, user).sections
    return {section.name: section.messages[0].text for section in sections}


def test_text_that_may_not_be_quoted_appears_as_its_summary(project, editor, entry):
    prompt = section_texts(project, editor)
    assert "cutover" in prompt["gists"]
    assert "a private chat" in prompt["gists"]
    assert "details" not in prompt
    assert "cutover" in section_texts(project, editor, Visibility.PROJECT)["gists"]


def test_recall_returns_excerpts_and_the_prompt_shows_summaries(project, owner, entry):
    assert [result.source_type for result in recall(RecallScope(project, owner), QUESTION)] == [
        "turn"
    ]
    assert recalled_texts(project, owner) == [entry.summary]


def test_the_api_finds_summaries_when_asked(project, editor, entry, api):
    url = "/api/v1/projects/billing/recall/"
    body = {"q": QUESTION, "source": "entry"}
    [result] = api(editor).get(url, body).json()["results"]
    assert (result["text"], result["session"]) == (entry.summary, None)
    assert result["source_id"] == f"{entry.pk}:1-{entry.revision}"
    assert api(editor).get(url, {"q": QUESTION}).json()["results"] == []


@pytest.mark.parametrize(
    "change", [{"withheld": True}, {"state": EntryStatus.HIDDEN}, {"state": EntryStatus.PROPOSED}]
)
def test_a_hidden_summary_is_not_found_from_that_moment(project, owner, entry, change):
    Entry.objects.filter(pk=entry.pk).update(**change)
    assert recalled_texts(project, owner) == []
    EntriesChanged.objects.create(project=project)
    indexing.catch_up()
    assert not Chunk.objects.filter(source=entry.pk).exists()


def test_a_new_text_takes_the_place_of_the_old(project, owner, entry):
    entry_operations.edit(entry, "- The cutover was called off.", owner)
    assert recalled_texts(project, owner) == []
    indexing.catch_up()
    assert recalled_texts(project, owner) == ["- The cutover was called off."]
    assert Chunk.objects.filter(source=entry.pk).count() == 1


def test_redacted_words_are_gone_at_once(project, owner, entry):
    entry_operations.redact(entry, "third of March", owner)
    assert not Chunk.objects.filter(source=entry.pk).exists()
    indexing.catch_up()
    assert "third of March" not in recalled_texts(project, owner)[0]


def test_forgetting_takes_the_summary_along(project, owner, entry):
    receipt = forget(project, ForgetScope(session=entry.session_id), owner)
    assert receipt.removed["chunks"] == 2
    assert not Chunk.objects.exists()


def test_following_twice_writes_nothing(project, entry):
    assert not EntriesChanged.objects.exists()
    EntriesChanged.objects.create(project=project)
    assert indexing.catch_up().chunks == 0
    assert not EntriesChanged.objects.exists()


def test_a_failed_job_stays_due(project, owner, entry, monkeypatch, caplog):
    def fail(*args):
        raise EmbedderError("away")

    with monkeypatch.context() as patched:
        patched.setattr("memory.recall.embedders.static.StaticEmbedder.embed_documents", fail)
        entry_operations.edit(entry, "- Another text.", owner)
        indexing.catch_up()
    assert "memory_ingest_failed" in caplog.text
    assert indexing.is_behind()
    indexing.catch_up()
    assert recalled_texts(project, owner) == ["- Another text."]
    assert not indexing.is_behind()


def test_a_project_that_cannot_be_indexed_does_not_keep_others_out(
    project, owner, entry, monkeypatch, caplog
):
    other = Project.objects.create(pk=UUID(int=1), name="Other", slug="other-index")
    update = summaries.update_project

    def fail(project_id, embedder):
        if project_id == other.pk:
            raise ValueError("broken")
        return update(project_id, embedder)

    monkeypatch.setattr(summaries, "update_project", fail)
    entry_operations.edit(entry, "- Another text.", owner)
    EntriesChanged.objects.create(project=other)
    indexing.catch_up()
    assert "memory_ingest_failed" in caplog.text
    assert EntriesChanged.objects.filter(project=other).exists()
    assert recalled_texts(project, owner) == ["- Another text."]


def test_reindex_creates_them_again(project, owner, entry):
    Chunk.objects.all().delete()
    reindexing.reindex(project, None, lambda step: None)
    assert recalled_texts(project, owner) == [entry.summary]


def test_one_message_is_not_quoted_twice(project, owner):
    for _ in range(3):
        talk(project, owner, CUTOVER)
    assert section_texts(project, owner)["details"].count("third of March") == 1


def test_two_workers_may_index_the_same_summary(project, owner, entry, monkeypatch):
    """The first reads that there is no chunk; then the second writes one, with another id."""
    Chunk.objects.filter(source=entry.pk).delete()
    EntriesChanged.objects.create(project=project)
    prepare = chunk_writer.prepare

    def prepare_last(*args):
        monkeypatch.setattr(chunk_writer, "prepare", prepare)
        indexing.catch_up()
        return prepare(*args)

    monkeypatch.setattr(chunk_writer, "prepare", prepare_last)
    indexing.catch_up()
    [chunk] = Chunk.objects.filter(source=entry.pk)
    assert chunk.vectors.count() == 1
    assert recalled_texts(project, owner) == [entry.summary]


def test_a_project_that_was_deleted_meanwhile_has_no_summaries(project):
    assert summaries.update_project(uuid4(), embedders.get()) == 0
