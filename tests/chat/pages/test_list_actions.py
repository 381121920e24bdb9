"""Rename, pin, archive and delete a chat from the lists."""

import pytest

from chat.models import Session
from tests.chat.pages.page_content import page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("sent", "name", "value"),
    [
        ({"title": "Tides"}, "title", "Tides"),
        ({"pinned": "true"}, "pinned", True),
    ],
)
def test_one_thing_is_changed_and_all_else_stays(client, owner, session, url, sent, name, value):
    Session.objects.update(title="Before", visibility="private", remembered=False)
    client.force_login(owner)
    answer = client.post(f"{url}keep/", sent | {"back": url})
    assert (answer.status_code, answer["Location"]) == (302, url)
    fields = {"title": "Before", "visibility": "private", "remembered": False, "pinned": False}
    assert Session.objects.values(*fields).get() == fields | {name: value}


def test_an_archived_chat_is_brought_back(client, owner, session, url):
    client.force_login(owner)
    client.post(f"{url}keep/", {"archived": "true"})
    assert Session.objects.get().archived_at is not None
    assert "Unarchive" in page(client, owner, f"{url}keep/?part")
    client.post(f"{url}keep/", {"archived": "false"})
    assert Session.objects.get().archived_at is None


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "javascript:1", "x", ""]
)
def test_it_leads_back_to_pages_of_ours_alone(client, owner, session, url, back):
    client.force_login(owner)
    answer = client.post(f"{url}keep/", {"pinned": "true", "back": back})
    assert answer["Location"] == "/projects/billing/"


def test_a_title_that_is_too_long_is_refused_beside_it(client, owner, session, url):
    client.force_login(owner)
    answer = client.post(f"{url}keep/", {"title": "x" * 201})
    assert answer.status_code == 400
    assert "at most 200 characters" in answer.content.decode()


def test_only_who_may_manage_it_is_offered_and_does_it(client, owner, editor, session, url):
    link = f'href="{url}keep/"'
    assert link in page(client, owner, url)
    assert link in page(client, owner, "/projects/billing/")
    assert link not in page(client, editor, url)
    client.force_login(editor)
    assert client.get(f"{url}keep/").status_code == 404
    assert client.post(f"{url}keep/", {"title": "Mine"}).status_code == 404
