"""/api/v1/messages/{id}/revisions/: earlier versions of a message."""

import pytest

from chat.conversations.edits import edit
from chat.models import Message

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(question) -> str:
    return f"/api/v1/messages/{question.pk}/revisions/"


def test_earlier_texts_are_there_the_latest_first(api, viewer, editor, owner, question, url):
    assert api(viewer).get(url).json()["results"] == []
    edit(question, "When, please?", editor)
    edit(question, "When?", owner)
    results = api(viewer).get(url).json()["results"]
    assert [(result["version"], result["content"], result["edited_by"]) for result in results] == [
        (2, "When, please?", "olive"),
        (1, "When is the cutover?", "edgar"),
    ]
    assert results[0]["edited_at"] > results[1]["edited_at"]


def test_they_come_in_pages_with_few_queries(api, editor, question, url, django_assert_num_queries):
    for number in range(12):
        edit(question, f"Number {number}.", editor)
    client = api(editor)
    with django_assert_num_queries(4):
        page = client.get(f"{url}?page_size=10").json()
    assert [result["version"] for result in page["results"]] == list(range(12, 2, -1))
    assert [result["version"] for result in client.get(page["next"]).json()["results"]] == [2, 1]


def test_strangers_and_what_is_not_there_get_404(api, stranger, editor, question, url):
    assert api(stranger).get(url).status_code == 404
    Message.objects.all().delete()
    assert api(editor).get(url).status_code == 404
