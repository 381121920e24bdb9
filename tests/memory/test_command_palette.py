"""The jump list: where a few letters may lead."""

import pytest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime

from chat.models import Visibility
from memory.models import EntryStatus
from projects.templatetags.navigation import MEMORY_PAGES, PROJECT_PAGES

pytestmark = pytest.mark.django_db


@pytest.fixture
def jump(client):
    def places(user, letters: str) -> str:
        client.force_login(user)
        answer = client.get(reverse("jump", args=["billing"]), {"q": letters})
        assert answer.status_code == 200
        return answer.content.decode()

    return places


def test_letters_lead_to_pages_chats_and_memories(jump, owner, entry, chat):
    assert reverse("facts", args=["billing"]) in jump(owner, "fac")
    response = jump(owner, "replica")
    assert reverse("session", args=["billing", chat.pk]) in response
    assert reverse("entry", args=["billing", entry.pk]) in response


@pytest.mark.parametrize("item", [*MEMORY_PAGES, *PROJECT_PAGES], ids=lambda item: item.url_name)
def test_every_page_of_the_sidebar_is_found(jump, owner, project, item):
    assert f'"{reverse(item.url_name, args=["billing"])}"' in jump(owner, str(item.label))


def test_a_chat_has_its_date_and_what_was_found_in_it(jump, owner, chat):
    chat.messages.update(text="The **replica** lags behind at noon.")
    type(chat).objects.filter(pk=chat.pk).update(title="Databases")
    response = " ".join(jump(owner, "replica").split())
    assert "The <mark>replica</mark> lags behind at noon." in response
    assert f"chat · {date_format(localtime(chat.last_activity_at), 'DATE_FORMAT')}" in response


def test_without_letters_the_latest_chats_are_there(jump, owner, chat):
    response = jump(owner, "")
    assert reverse("session", args=["billing", chat.pk]) in response
    assert "New chat" in response
    assert "Settings" not in response


def test_hidden_chats_are_not_offered(jump, viewer, entry, chat):
    chat.visibility = Visibility.PRIVATE
    chat.save()
    entry.state = EntryStatus.HIDDEN
    entry.save()
    response = jump(viewer, "replica")
    assert str(chat.pk) not in response
    assert str(entry.pk) not in response
    assert reverse("imports", args=["billing"]) not in jump(viewer, "imp")
    assert "New chat" not in jump(viewer, "")


def test_odd_letters_are_answered(jump, owner, chat):
    for letters in ("\0", "'); --", "“", "&|!", "x" * 5_000):
        assert jump(owner, letters)


def test_it_is_not_for_strangers(client, stranger, project):
    client.force_login(stranger)
    assert client.get(reverse("jump", args=["billing"])).status_code == 404


def test_it_costs_as_much_for_many_chats(
    client, owner, chat, remember, django_assert_max_num_queries
):
    for number in range(1, 20):
        remember("- The replica", granularity="day", period_key=f"2026-01-{number:02}")
    client.force_login(owner)
    with django_assert_max_num_queries(9):
        client.get(reverse("jump", args=["billing"]), {"q": "replica"})
