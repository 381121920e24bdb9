"""The bank and its entries as they stood at a moment."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Session, Visibility
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of, entry_as_of
from memory.models import Entry
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db

START = datetime(2025, 4, 7, 9, tzinfo=UTC)


def talk(project, owner, day: float, words: str) -> Session:
    at = START + timedelta(days=day)
    session = create_session(project, owner, title=f"Day {day}")
    post_messages(session, [draft(words, author=owner, created_at=at)])
    Session.objects.filter(pk=session.pk).update(last_activity_at=at)
    return session


@pytest.fixture
def summarised_texts(project, owner):
    """Two days of talk, each remembered an hour later; the bank's text after each."""
    texts = []
    for day, words in enumerate(["The platform team owns billing.", "Payments owns billing now."]):
        talk(project, owner, day, words)
        cycle.run(START + timedelta(days=day, hours=1))
        texts.append(rendered_bank(project).text)
    return texts


def test_the_bank_is_shown_as_of_a_past_day(summarised_texts, project):
    assert bank_as_of(project, START).text == ""
    assert bank_as_of(project, START + timedelta(hours=2)).text == summarised_texts[0]
    assert bank_as_of(project, START + timedelta(days=1, hours=2)).text == summarised_texts[1]
    assert "Payments" in summarised_texts[1]
    assert "Payments" not in summarised_texts[0]


def test_layers_that_settled_later_are_taken_apart_again(project, owner):
    project.bank_max_tokens = 150
    project.save()
    texts = {}
    for day in range(10):
        talk(project, owner, day, f"Build {day} takes {day + 10} minutes and team {day} owns it.")
        talk(project, owner, day + 0.01, f"The server of build {day} has {day + 50} gigabytes.")
        now = START + timedelta(days=day, hours=1)
        cycle.run(now)
        texts[now] = rendered_bank(project).text
    assert Entry.objects.exclude(granularity="conversation").exists()
    for now, text in texts.items():
        assert bank_as_of(project, now + timedelta(minutes=1)).text == text


def test_the_past_shows_a_text_before_its_edit(summarised_texts, project, owner):
    entry = Entry.objects.get(summary__contains="platform")
    entry_operations.edit(entry, "- Nobody owns billing.", owner)
    assert bank_as_of(project, START + timedelta(hours=2)).text == summarised_texts[0]
    assert "Nobody owns" in bank_as_of(project, datetime.now(UTC) + timedelta(minutes=1)).text


def test_an_earlier_text_of_a_chat_that_is_private_now_is_a_gap(summarised_texts, project, owner):
    entry = Entry.objects.get(summary__contains="platform")
    entry_operations.edit(entry, "- Nobody owns billing.", owner)
    Session.objects.filter(pk=entry.session_id).update(visibility=Visibility.PRIVATE)
    past = bank_as_of(project, START + timedelta(hours=2))
    assert past.text == ""
    assert [pk for pk, _reason in past.left_out] == [entry.pk]


def test_an_entry_forgotten_since_is_a_gap(summarised_texts, project):
    chat_session = Session.objects.get(title="Day 0")
    entry = Entry.objects.get(session=chat_session)
    extra = edits.fork(chat_session.messages.get(), chat_session.creator)
    forget(project, ForgetScope(message=chat_session.messages.get().pk))
    bank = bank_as_of(project, START + timedelta(hours=2))
    assert bank.text == ""
    assert not Entry.objects.filter(pk=entry.pk).exists()
    assert extra.messages.get().text == ""


def test_an_ancestor_of_what_was_forgotten_is_a_gap_and_never_the_text_of_today(project, owner):
    project.bank_max_tokens = 150
    project.save()
    for day in range(8):
        talk(project, owner, day, f"Build {day} takes {day + 10} minutes and team {day} owns it.")
        talk(project, owner, day + 0.01, f"The server of build {day} has {day + 50} gigabytes.")
    now = START + timedelta(days=9)
    cycle.run(now)
    digest = Entry.objects.exclude(granularity="conversation").get(summary__contains="Build 2")
    # As if a model had written it: its lines rest on all of its sources.
    digest.set_lines([replace(line, sources=()) for line in digest.read_lines()])
    digest.save(update_fields=["lines"])
    forget(project, ForgetScope(session=Session.objects.get(title="Day 2").pk))
    cycle.run(now + timedelta(minutes=5))
    bank = bank_as_of(project, now + timedelta(minutes=1))
    assert "Build 2" not in bank.text
    assert Entry.objects.filter(pk=digest.pk).exists()
    assert (digest.pk, "forgotten") in bank.left_out


def test_an_entry_hidden_since_is_left_out_with_the_reason(summarised_texts, project):
    entry = Entry.objects.get(summary__contains="platform")
    entry_operations.set_hidden(entry, True)
    bank = bank_as_of(project, START + timedelta(hours=2))
    assert (bank.text, bank.left_out) == ("", ((entry.pk, "removed"),))


def test_one_entry_is_shown_as_of_a_past_day(summarised_texts, project, owner):
    entry = Entry.objects.get(summary__contains="platform")
    entry_operations.edit(entry, "- Nobody owns billing.", owner)
    past_entry = entry_as_of(entry, START + timedelta(hours=2))
    assert "platform team" in past_entry.summary
    assert entry_as_of(entry, START) is None


def test_the_api_tells_how_it_stood(summarised_texts, project, viewer, api):
    client = api(viewer)
    url = "/api/v1/projects/billing/memory/"
    payload = client.get(url, {"as_of": "2025-04-07T11:00:00Z"}).json()
    assert (payload["text"], payload["version"]) == (summarised_texts[0], None)
    assert client.get(url, {"as_of": "2025-04-07"}).json()["text"] == summarised_texts[0]
    assert client.get(url).json()["text"] == summarised_texts[1]
    answer = client.get(url, {"as_of": "yesterday"})
    assert (answer.status_code, list(answer.json())) == (400, ["as_of"])
    assert client.get(url, {"as_of": "2025-13-45"}).status_code == 400


def test_the_api_tells_how_an_entry_stood(summarised_texts, project, owner, api):
    entry = Entry.objects.get(summary__contains="platform")
    entry_operations.edit(entry, "- Nobody owns billing.", owner)
    url = f"/api/v1/projects/billing/memory/entries/{entry.pk}/"
    then = api(owner).get(url, {"as_of": "2025-04-07T11:00:00Z"}).json()
    assert ("platform" in then["summary"], then["revision"]) == (True, 1)
    assert api(owner).get(url, {"as_of": "2025-04-01"}).status_code == 404


def test_looking_back_takes_the_same_queries_however_much_there_is(
    project, owner, django_assert_max_num_queries
):
    for day in range(12):
        talk(project, owner, day, f"Build {day} takes {day + 10} minutes.")
    cycle.run(START + timedelta(days=13))
    with django_assert_max_num_queries(3):
        bank_as_of(project, START + timedelta(days=14))
