"""Pages in the language of who reads them; programs, models and the record in English."""

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation
from pydantic_ai.exceptions import ModelRateLimitError

from chat import exporters
from chat.conversations.generation import IMAGES_NOT_SEEN
from chat.conversations.lookups import TRUNCATED
from chat.conversations.messages import post_message
from chat.importers.base import ErrorList
from chat.models import Import, Message, Session
from chat.prompt.preview import preview
from chat.providers.errors import to_provider_error
from chat.views import presenters
from memory import facts
from memory.layers import periods
from memory.layers.bank_cache import rendered_bank
from memory.layers.periods import Granularity
from memory.layers.summarising.llm import UNUSABLE
from memory.models import Cursor
from memory.portability.tables import json_schema
from projects.core.text import translate_reason
from projects.models import Membership
from tests.html import compact

pytestmark = pytest.mark.django_db

GERMAN = "de-AT,de;q=0.9,en;q=0.5"


@pytest.fixture
def reads(client, owner, project):
    """The text of a page of the project for its owner, whose browser asks for German."""
    client.force_login(owner)

    def page(name: str, *more, accept: str = GERMAN) -> str:
        answer = client.get(
            reverse(name, args=[project.slug, *more]), headers={"Accept-Language": accept}
        )
        assert answer.status_code == 200
        return answer.text

    return page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("project", "Neuer Chat"),
        ("memory", "Was sich Billing gemerkt hat"),
        ("overview", "Das Gedächtnis auf einen Blick"),
        ("project-settings", "Budget für das Gedächtnis (Token)"),
        ("facts", "Fakt hinzufügen"),
        ("memory-blocks", "Neuer angehefteter Text"),
        ("memory-review", "Prüfung"),
        ("memory-activity", "Als Nächstes"),
        ("memory-search", "Durchsucht werden"),
        ("imports", "Chats importieren"),
        ("about-me", "Chats, die Sie begonnen haben"),
        ("memory-forget", "Vergessene Nachrichten"),
        ("notes", "Neue Notiz"),
    ],
)
def test_a_german_browser_gets_german_pages_at_the_same_cost(reads, entry, name, words):
    reads(name)
    with CaptureQueriesContext(connection) as in_german:
        page = reads(name)
    with CaptureQueriesContext(connection) as in_english:
        assert '<html lang="en">' in reads(name, accept="en")
    assert '<html lang="de">' in page
    assert words in page
    assert len(in_german) == len(in_english)
    # A drawing or a meter takes points, not commas.
    assert not re.search(r'\s(?:x|y|width|height|value|min|max)="-?\d+,\d', page)


def test_a_chat_is_shown_in_german_with_german_dates(reads, chat, entry):
    page = reads("session", chat.pk)
    assert "Donnerstag, 12. März 2026" in page
    assert "Nachricht schreiben …" in page
    assert "Do, 12. März 2026" in reads("entry", entry.pk)


def test_a_turn_that_ends_a_stream_is_in_the_language_of_who_asked(rf, chat, owner):
    request = rf.get("/")
    request.user = owner
    with translation.override("de"):
        render = presenters.turn_renderer(request, chat)
    assert "Assistent" in render(chat.messages.last())


def test_unnamed_objects_are_named_in_the_readers_language(reads, project, owner):
    unnamed = Session.objects.create(project=project, creator=owner)
    assert "data-chat-title>Chat ohne Titel</h1>" in reads("session", unnamed.pk)
    titled = Session.objects.create(project=project, creator=owner, title="Settings")
    assert "data-chat-title>Settings</h1>" in reads("session", titled.pk)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            str(to_provider_error(ModelRateLimitError("small", "Slow down", retry_after=6.5))),
            "nimmt gerade keine weiteren Anfragen an. Bitte in 7 s noch einmal versuchen.",
        ),
        (f"{IMAGES_NOT_SEEN}\n{TRUNCATED}", "Die Antwort hat die maximale Länge erreicht."),
    ],
)
def test_the_reason_and_the_notes_of_a_reply_are_in_the_readers_language(reads, chat, error, words):
    Message.objects.filter(pk=chat.head_id).update(status="complete", error=error, role="assistant")
    page = compact(reads("session", chat.pk))
    assert words in page
    assert error.split()[0] not in page


def test_the_errors_of_an_import_are_in_the_readers_language(reads, project, owner):
    errors = ErrorList()
    errors.append("notes.zip: Line 2: There is no content.")
    errors.append("It has no line that is a message.\nLine 1: It is longer than 64 MB.")
    errors.append("“Cutover”: Image “a.png”: It is not base64.")
    errors.append("The chat of 2026-03-12 09:30 is closed.")
    errors.append("Message 3fa85f64-5717-4562-b3fc-2c963f66afa6: There is no content.")
    errors.append("Something that %s nobody has translated: 100 %")
    Import.objects.create(project=project, user=owner, state="done", errors=list(errors))
    page = compact(reads("imports"))
    assert "notes.zip: Zeile 2: Der Inhalt fehlt." in page
    assert "Keine Zeile der Datei ist eine Nachricht. Zeile 1: Länger als 64 MB." in page
    assert "“Cutover”: Bild “a.png”: Das ist kein Base64." in page
    assert "Der Chat vom 2026-03-12 09:30 ist geschlossen." in page
    assert "Nachricht 3fa85f64-5717-4562-b3fc-2c963f66afa6: Der Inhalt fehlt." in page
    assert "Something that %s nobody has translated: 100 %" in page


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "Strata itself failed: KeyError.",
            "In Strata selbst ist ein Fehler aufgetreten: KeyError.",
        ),
        (
            f"{UNUSABLE}: the answer was empty",
            "Die Zusammenfassung des Modells war nicht verwendbar: Die Antwort war leer",
        ),
    ],
)
def test_the_reason_of_a_failed_summary_is_in_the_readers_language(
    reads, project, chat, reason, words
):
    Cursor.objects.filter(session=chat).update(failures=1, last_error=reason)
    post_message(chat, "The rehearsal is on Monday.", author=chat.creator)
    assert words in compact(reads("memory-activity"))


def test_a_rejected_file_is_explained_in_the_readers_language(client, owner, project):
    client.force_login(owner)
    file = SimpleUploadedFile("chats.zip", b"no zip")
    answer = client.post(
        reverse("imports", args=[project.slug]),
        {"file": file, "format": "auto"},
        headers={"Accept-Language": GERMAN},
    )
    assert "Der Name endet auf .zip, aber es ist keine Zip-Datei." in answer.text


def test_a_day_field_holds_what_browsers_take(reads, project, owner):
    member = Membership.objects.select_related("project", "user").get(project=project, user=owner)
    since = datetime(2026, 3, 1, 12, tzinfo=UTC)
    fact, _statement = facts.create_fact(
        member, facts.Statement("Billing", "is owned by", "Ana", since)
    )
    page = reads("fact", fact.pk)
    assert 'name="valid_from" value="2026-03-01"' in page
    assert "seit 1. März 2026" in page


@pytest.fixture
def strict(owner) -> Client:
    """A browser that asks for German, at a server that checks each form's token."""
    client = Client(enforce_csrf_checks=True, headers={"Accept-Language": GERMAN})
    client.force_login(owner)
    return client


def choose(client: Client, page: str, language: str):
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get(page).text)[1]
    form = {"csrfmiddlewaretoken": token, "language": language, "next": page}
    return client.post(reverse("set_language"), form)


def test_a_reader_chooses_another_language_and_stays_on_the_page(strict, project):
    page = reverse("memory-search", args=[project.slug]) + "?q=cutover"
    assert f'name="next" value="{page}"' in strict.get(page).text
    answer = choose(strict, page, "en")
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert '<html lang="en">' in strict.get(page).text
    choose(strict, page, "de")
    assert '<html lang="de">' in strict.get(page).text


def test_no_other_site_chooses_it_or_is_led_to(strict, project):
    unasked = strict.post(reverse("set_language"), {"language": "en"})
    assert unasked.status_code == 403
    page = reverse("project", args=[project.slug])
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', strict.get(page).text)[1]
    form = {"csrfmiddlewaretoken": token, "language": "en", "next": "https://evil.example/"}
    assert strict.post(reverse("set_language"), form)["Location"] == "/"


def test_the_choice_stands_before_the_door_and_on_the_list(client, owner):
    headers = {"Accept-Language": GERMAN}
    door = compact(client.get(reverse("login"), headers=headers).text)
    assert "Projekte mit Gedächtnis." in door and 'lang="en">English</button>' in door
    client.force_login(owner)
    page = compact(client.get(reverse("projects") + "?all", headers=headers).text)
    assert 'lang="de" aria-current="true">Deutsch</button>' in page


@pytest.mark.parametrize("path", ["projects/nowhere/", "nowhere/"])
def test_programs_are_answered_in_english(api, owner, path):
    answer = api(owner).get(f"/api/v1/{path}", headers={"Accept-Language": "de"})
    assert answer.status_code == 404
    assert answer.json()["detail"] == "Not found."
    assert "Accept-Language" not in answer.headers.get("Vary", "")


def test_an_error_of_a_program_is_in_english(api, owner):
    answer = api(owner).post(
        "/api/v1/projects/",
        {"timezone": "Nowhere"},
        format="json",
        headers={"Accept-Language": "de"},
    )
    assert answer.json()["name"] == ["This field is required."]
    assert "is not a time zone" in str(answer.json()["timezone"])


def test_models_and_files_know_no_readers_language(project, owner, chat, entry, day):
    unnamed = Session.objects.create(project=project, creator=owner)

    def snapshot() -> tuple:
        prompt = preview(unnamed, "Does it stay?", owner)
        files = [b"".join(exporters.export(chat, kind)) for kind in ("markdown", "json")]
        bank = rendered_bank(project)
        return (
            [section.messages for section in prompt.sections],
            prompt.receipt(),
            files[0],
            bank.text,
            json_schema(),
        )

    with translation.override("en"):
        in_english = snapshot()
    with translation.override("de"):
        in_german = snapshot()
    assert in_english == in_german
    assert "[March 2026]\n- 12 Mar: " in in_german[3]


def test_periods_read_in_english_on_pages_as_in_prompts():
    first = date(2024, 12, 1)
    for number in range(0, 800, 3):
        day = (first + timedelta(days=number)).isoformat()
        week = periods.week_of(day)
        named = {"day": day, "week": week, "month": periods.month_of(week)}
        for layer, key in named.items():
            granularity = Granularity(layer)
            assert periods.localized_label(granularity, key) == periods.label(granularity, key)


def test_a_week_reads_in_german():
    with translation.override("de"):
        assert periods.localized_label(Granularity.WEEK, "2026-W10") == "Woche 10, 2.–8. März 2026"
        assert (
            periods.localized_label(Granularity.WEEK, "2026-W14")
            == "Woche 14, 30. März – 5. April 2026"
        )
        assert periods.localized_label(Granularity.MONTH, "2026-03") == "März 2026"


def test_a_reason_with_many_colons_is_not_translated_endlessly():
    reason = "Line 2: " + "a: " * 5_000
    with translation.override("de"):
        assert translate_reason(reason) == "Zeile 2: " + "a: " * 5_000
