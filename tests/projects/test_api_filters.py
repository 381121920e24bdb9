"""Lists are narrowed and put in order; what makes no sense is refused by the parameter's name."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest

from chat.conversations.messages import draft, post_messages
from chat.models import Session

pytestmark = pytest.mark.django_db

PROJECT = "/api/v1/projects/billing/"
AT = datetime(2026, 3, 12, 10, tzinfo=UTC)


@pytest.fixture
def client(api, owner, project):
    return api(owner)


@pytest.fixture
def sessions(project, owner, editor):
    return [
        Session.objects.create(
            project=project,
            creator=(owner, editor)[number % 2],
            title=f"Chat {number}",
            visibility=("project", "private")[number == 2],
            remembered=number != 1,
            status=("active", "closed")[number == 3],
            last_activity_at=AT - timedelta(days=number),
        )
        for number in range(4)
    ]


def titles(client, **query) -> list[str]:
    answer = client.get(f"{PROJECT}sessions/", query)
    assert answer.status_code == 200, answer.json()
    return [result["title"][-1] for result in answer.json()["results"]]


def test_sessions_are_narrowed(client, sessions):
    assert titles(client) == ["3", "2", "1", "0"]
    assert titles(client, status="closed") == ["3"]
    assert titles(client, visibility="private") == ["2"]
    assert titles(client, remembered="false") == ["1"]
    assert titles(client, remembered="TRUE", status="active") == ["2", "0"]
    assert titles(client, creator="edgar") == ["3", "1"]
    assert titles(client, since="2026-03-11T10:00:00Z") == ["1", "0"]
    assert titles(client, until="2026-03-11T11:00:00+01:00") == ["3", "2"]


def test_sessions_are_put_in_order_page_by_page(client, sessions):
    assert titles(client, ordering="-last_activity_at") == ["0", "1", "2", "3"]
    assert titles(client, ordering="id") == ["0", "1", "2", "3"]
    url = f"{PROJECT}sessions/?ordering=last_activity_at&page_size=3"
    first = client.get(url).json()
    second = client.get(first["next"]).json()
    texts = [result["title"][-1] for result in (*first["results"], *second["results"])]
    assert texts == ["3", "2", "1", "0"]


def test_messages_are_narrowed_and_put_in_order(client, sessions, owner):
    messages = [draft("A", author=owner), draft("B", role="assistant"), draft("C", author=owner)]
    post_messages(sessions[0], messages)
    url = f"/api/v1/sessions/{sessions[0].pk}/messages/"

    def contents(**query) -> str:
        return "".join(result["content"] for result in client.get(url, query).json()["results"])

    assert (contents(), contents(ordering="-seq")) == ("ABC", "CBA")
    assert (contents(role="assistant"), contents(after=1), contents(after=3)) == ("B", "BC", "")
    assert contents(status="failed") == ""


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("sessions/", {"status": "asleep"}),
        ("sessions/", {"visibility": "all"}),
        ("sessions/", {"remembered": "perhaps"}),
        ("sessions/", {"archived": "2"}),
        ("sessions/", {"since": "yesterday"}),
        ("sessions/", {"since": "0001-01-01T00:00:00+23:59"}),
        ("sessions/", {"ordering": "title"}),
        ("sessions/", {"page_size": "0"}),
        ("sessions/", {"page_size": "many"}),
        ("sessions/", {"page_size": "-1"}),
        ("sessions/", {"q": "a\0b"}),
        ("memory/entries/", {"state": "gone"}),
        ("memory/entries/", {"granularity": "year"}),
        ("memory/entries/", {"pinned": "x"}),
        ("memory/entries/", {"session": "x"}),
        ("memory/entries/", {"because": "x"}),
        ("memory/", {"as_of": "0104-08-09T14:50:34+25:41"}),
        ("memory/", {"as_of": "0001-01-01T00:00:00+23:00"}),
        ("facts/", {"user": "edgar"}),
        ("facts/", {"state": "x"}),
        ("facts/", {"valid_at": "x"}),
        ("activity/", {"verb": "x"}),
        ("activity/", {"until": "x"}),
        ("imports/", {"state": "x"}),
        ("notes/", {"since": "x"}),
        ("recall/", {"limit": "9" * 30}),
        ("recall/", {"source": "x"}),
        ("usage/", {"since": "x"}),
    ],
)
def test_an_invalid_filter_is_refused_by_its_name(client, path, query):
    answer = client.get(f"{PROJECT}{path}", query)
    assert answer.status_code == 400
    assert list(answer.json()) == list(query)


def test_a_moment_of_a_far_zone_is_understood(client, project):
    response = client.get(f"{PROJECT}memory/", {"as_of": "0104-08-09T14:50:34+21:41"})
    assert response.status_code == 200


def test_a_place_beyond_all_numbers_is_refused(client, sessions):
    url = f"/api/v1/sessions/{sessions[0].pk}/messages/"
    for after in ("-1", "9" * 20, "1e400", "NaN"):
        assert client.get(url, {"after": after}).status_code == 400, after


@pytest.mark.parametrize("path", ["sessions/", "notes/", "facts/", "activity/", "members/"])
def test_a_mangled_cursor_is_not_found(client, path):
    for cursor in ("x", "cD1hYmM=", "cD0lMDA=", "bz0tMQ=="):
        assert client.get(f"{PROJECT}{path}", {"cursor": cursor}).status_code == 404, cursor


def test_a_list_takes_the_same_queries_however_it_is_asked(
    client, sessions, django_assert_num_queries
):
    query = {"ordering": "-last_activity_at", "remembered": "true", "since": "2026-01-01T00:00Z"}
    with django_assert_num_queries(3):
        assert len(titles(client, **query)) == 3


def test_a_cursor_with_an_impossible_offset_is_not_found(client, sessions):
    cursor = b64encode(b"p=2020-01-01T00%3A00%3A00%2B23%3A59").decode()
    query = {"ordering": "-last_activity_at", "cursor": cursor}
    assert client.get(f"{PROJECT}sessions/", query).status_code == 404
