"""/api/v1/messages/{id}/revisions/: what a message said before."""

import pytest

from chat.conversations.edits import edit
from chat.models import Message

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(asked) -> str:
    return f"/api/v1/messages/{asked.pk}/revisions/"


def test_earlier_texts_are_there_the_latest_first(api, viewer, editor, owner, asked, url):
    assert api(viewer).get(url).json()["results"] == []
    edit(asked, "When, please?", editor)
    edit(asked, "When?", owner)
    told = api(viewer).get(url).json()["results"]
    assert [(one["version"], one["content"], one["edited_by"]) for one in told] == [
        (2, "When, please?", "olive"),
        (1, "When is the cutover?", "edgar"),
    ]
    assert told[0]["edited_at"] > told[1]["edited_at"]


def test_they_come_in_pages_with_few_queries(api, editor, asked, url, django_assert_num_queries):
    for number in range(12):
        edit(asked, f"Number {number}.", editor)
    client = api(editor)
    with django_assert_num_queries(4):
        page = client.get(f"{url}?page_size=10").json()
    assert [one["version"] for one in page["results"]] == list(range(12, 2, -1))
    assert [one["version"] for one in client.get(page["next"]).json()["results"]] == [2, 1]


def test_strangers_and_what_is_not_there_get_404(api, stranger, editor, asked, url):
    assert api(stranger).get(url).status_code == 404
    Message.objects.all().delete()
    assert api(editor).get(url).status_code == 404
