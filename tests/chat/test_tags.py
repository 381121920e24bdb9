"""Tags: words by which people group chats."""

import json

import pytest

from chat.conversations.edits import fork
from chat.conversations.messages import post_message
from chat.conversations.sessions import clean_tags
from chat.exporters import get_exporter
from chat.models import Session
from tests.html import compact

pytestmark = pytest.mark.django_db

LIST = "/projects/billing/"


@pytest.fixture
def chats(project, editor) -> list[Session]:
    return [
        Session.objects.create(project=project, creator=editor, title=title, tags=tags)
        for title, tags in (("Tides", ["sea"]), ("Gauges", ["Sea", "tools"]), ("Budget", []))
    ]


def test_tags_are_set_in_the_menu_of_a_chat(client, editor, chats):
    client.force_login(editor)
    keep = f"{LIST}chats/{chats[2].pk}/keep/"
    assert 'name="tags"' in client.get(keep).content.decode()
    client.post(keep, {"title": "Budget", "tags": " money, #2027 , money,, Year  end"})
    chats[2].refresh_from_db()
    assert chats[2].tags == ["money", "2027", "Year end"]
    client.post(keep, {"pinned": "true"})
    chats[2].refresh_from_db()
    assert chats[2].tags == ["money", "2027", "Year end"]
    refused = client.post(keep, {"title": "Budget", "tags": "x" * 31})
    assert refused.status_code == 400 and "at most 30 characters" in refused.content.decode()


def test_a_tag_has_no_spaces_beside_its_sign():
    assert clean_tags(["# money", "2027 #", "# #", "money"]) == ["money", "2027"]


def test_the_list_is_filtered_and_searched_by_tag(client, editor, chats):
    client.force_login(editor)
    page = compact(client.get(LIST).content.decode())
    assert '<a class="chip" href="?tag=sea">#sea</a>' in page and "#tools</span>" in page
    filtered = client.get(LIST, {"tag": "tools"}).content.decode()
    main = filtered[filtered.index("<main") :]
    assert "Gauges" in main and "Tides" not in main and 'aria-current="true"' in main
    unused = client.get(LIST, {"tag": "unused"}).content.decode()
    assert "No chats with the tag “unused”." in unused
    found = client.get(LIST, {"q": "tools"}).content.decode()
    assert "Gauges" in found[found.index("<main") :]


@pytest.mark.parametrize("query", ["#sea", "SEA"])
def test_a_search_for_a_tag_ignores_case(api, editor, chats, query):
    rows = api(editor).get("/api/v1/projects/billing/sessions/", {"q": query}).json()["results"]
    assert {row["title"] for row in rows} == {"Tides", "Gauges"}


def test_tags_of_anothers_private_chat_are_not_listed(client, viewer, chats):
    Session.objects.filter(title="Gauges").update(visibility="private")
    client.force_login(viewer)
    page = client.get(LIST).content.decode()
    assert "#sea" in page and "#tools" not in page


def test_the_api_reads_sets_and_filters_tags(api, editor, chats):
    url = f"/api/v1/sessions/{chats[0].pk}/"
    assert api(editor).get(url).json()["tags"] == ["sea"]
    answer = api(editor).patch(url, {"tags": ["Harbour ", "harbour"]}, "json")
    assert answer.json()["tags"] == ["harbour"]
    rows = api(editor).get("/api/v1/projects/billing/sessions/", {"tag": "harbour"}).json()
    assert [row["title"] for row in rows["results"]] == ["Tides"]
    many = [str(number) for number in range(11)]
    assert api(editor).patch(url, {"tags": many}, "json").status_code == 400


def test_forks_and_exports_have_the_tags(editor, chats):
    message = post_message(chats[1], "Which gauge?", author=editor)
    assert fork(message, editor).tags == ["Sea", "tools"]
    exported = json.loads("".join(get_exporter("json").render(chats[1])))
    assert exported["session"]["tags"] == ["Sea", "tools"]
