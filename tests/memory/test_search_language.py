"""Recall splits text into words in the project's language, or in the server's."""

import pytest
from django.test import Client

from memory.models import Chunk, IndexCursor, SourceType
from memory.recall import fulltext, indexing
from tests.memory.recall_helpers import recalled_texts, talk

pytestmark = pytest.mark.django_db

HOUSES = "Die beiden Häuser am Hafen wurden im Mai verkauft."


def languages() -> set[str]:
    return set(Chunk.objects.values_list("language", flat=True))


def met(project, question: str) -> list[int]:
    """In how many chunks the words of the question stand, by word."""
    terms, _ = fulltext.query_terms(project, question)
    return [Chunk.objects.filter(terms__contains=[term.hash]).count() for term in terms]


@pytest.fixture
def german(project):
    project.search_language = "german"
    project.save(update_fields=["search_language"])
    return project


def test_it_is_the_servers_unless_the_project_has_its_own(project, owner, settings):
    talk(project, owner, HOUSES)
    assert languages() == {"english"}
    assert met(project, "Welches Haus?") == [0, 0]


def test_words_are_found_by_the_stems_of_the_projects_language(german, owner):
    talk(german, owner, HOUSES)
    assert languages() == {"german"}
    assert met(german, "Welches Haus?") == [1]
    assert recalled_texts(german, owner, "Welches Haus?") == [HOUSES]


def test_a_changed_language_chunks_all_messages_again(project, owner, api):
    talk(project, owner, HOUSES)
    client = api(owner)
    url = f"/api/v1/projects/{project.slug}/"
    assert client.patch(url, {"search_language": "german"}, format="json").status_code == 200
    assert indexing.is_behind()
    indexing.catch_up()
    project.refresh_from_db()
    assert languages() == {"german"}
    assert met(project, "Welches Haus?") == [1]


@pytest.mark.parametrize("language, calls", [("simple", 1), ("german", 0)])
def test_only_a_change_wakes_indexing(german, owner, monkeypatch, language, calls):
    talk(german, owner, HOUSES)
    woken: list[None] = []
    monkeypatch.setattr("memory.signal_handlers.wake_indexing", lambda: woken.append(None))
    german.name, german.search_language = "Hafen", language
    german.save()
    assert IndexCursor.objects.due().count() == len(woken) == calls


def test_summaries_follow_it_too(project, entry):
    indexing.catch_up()
    assert languages() == {"english"}
    assert Chunk.objects.filter(source_type=SourceType.ENTRY).exists()
    project.search_language = "german"
    project.save()
    indexing.catch_up()
    assert languages() == {"german"}


@pytest.mark.parametrize("name", ["klingon", "German", "pg_catalog.german", "x'; --"])
def test_a_language_unknown_to_postgresql_is_refused(project, owner, api, name):
    url = f"/api/v1/projects/{project.slug}/"
    answer = api(owner).patch(url, {"search_language": name}, format="json")
    assert answer.status_code == 400
    assert "german" in answer.json()["search_language"][0]


def test_the_settings_offer_what_there_is(project, owner):
    client = Client()
    client.force_login(owner)
    page = client.get("/projects/billing/settings/").content.decode()
    assert '<option value="" selected>Server default: english</option>' in page
    assert '<option value="german">german</option>' in page
