"""/api/v1/projects/{slug}/notes/: written down, read, changed, deleted."""

import pytest

from chat.conversations import edits, notes, sessions
from chat.conversations.messages import MAX_MESSAGE_CHARS, post_message
from chat.models import Message, Visibility
from projects.services import create_project

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/notes/"
CUTOVER = "The cutover is on 3 March."


@pytest.fixture
def note(project, editor) -> Message:
    return notes.add_note(project, editor, CUTOVER)


@pytest.fixture
def url(note) -> str:
    return f"{URL}{note.pk}/"


def listed(client, query: str = "") -> list[str]:
    answer = client.get(URL + query)
    assert answer.status_code == 200
    return [result["text"] for result in answer.json()["results"]]


def test_a_note_is_written_down(api, editor):
    answer = api(editor).post(URL, {"text": f" {CUTOVER}\n"}, format="json")
    assert answer.status_code == 201
    assert answer.headers["ETag"].startswith('"1.')
    payload = answer.json()
    assert payload.keys() == {
        "id",
        "text",
        "author",
        "session",
        "seq",
        "version",
        "created_at",
        "edited_at",
    }
    assert (payload["text"], payload["author"], payload["seq"]) == (f" {CUTOVER}\n", "edgar", 1)
    assert (payload["version"], payload["edited_at"]) == (1, None)
    assert api(editor).get(f"{URL}{payload['id']}/").json() == payload
    assert (
        api(editor).get(f"/api/v1/messages/{payload['id']}/").json()["content"] == payload["text"]
    )


def test_it_may_be_of_another_time_that_makes_sense(api, editor):
    fields = {"text": CUTOVER, "created_at": "2023-05-08T13:56:00Z"}
    assert api(editor).post(URL, fields, format="json").json()["created_at"] == fields["created_at"]
    for at in ("1969-12-31T00:00:00Z", "2999-01-01T00:00:00Z", "yesterday"):
        answer = api(editor).post(URL, fields | {"created_at": at}, format="json")
        assert answer.status_code == 400
        assert answer.json().keys() == {"created_at"}
    assert Message.objects.count() == 1


@pytest.mark.parametrize(
    "value",
    [{}, {"text": ""}, {"text": " \n "}, {"text": "x" * (MAX_MESSAGE_CHARS + 1)}, {"text": []}],
)
def test_an_invalid_note_is_refused(api, editor, url, value):
    client = api(editor)
    for answer in (client.post(URL, value, format="json"), client.patch(url, value, format="json")):
        assert answer.status_code == 400
        assert answer.json().keys() == {"text"}
    assert Message.objects.count() == 1


def test_pages_of_the_list_hold_each_note_once(api, editor, project):
    for number in range(5):
        notes.add_note(project, editor, f"Note {number}")
    # Two that were written at one instant.
    Message.objects.filter(seq=2).update(created_at=Message.objects.get(seq=3).created_at)
    client = api(editor)
    matches, page = [], client.get(URL + "?page_size=2").json()
    matches += page["results"]
    while page["next"]:
        page = client.get(page["next"]).json()
        matches += page["results"]
    assert [match["text"] for match in matches] == [f"Note {number}" for number in (4, 3, 2, 1, 0)]
    assert client.get(URL + "?cursor=cD14").status_code == 404


def test_they_are_found_by_words_and_by_author(api, owner, project, note):
    notes.add_note(project, owner, "The platform team owns billing.")
    client = api(owner)
    assert listed(client, "?q=march+cut") == [CUTOVER]
    assert listed(client, "?q=march+owns") == []
    assert listed(client, "?author=edgar") == [CUTOVER]
    assert listed(client, "?author=nobody") == []
    assert listed(client, "?author=olive&q=platform") == ["The platform team owns billing."]
    assert client.get(URL + "?q=" + "x" * 201).status_code == 400


def test_a_note_is_changed_and_its_first_text_kept(api, editor, url, note):
    answer = api(editor).patch(url, {"text": "On 4 March."}, format="json", HTTP_IF_MATCH='"1"')
    assert answer.status_code == 200
    assert (answer.json()["text"], answer.json()["version"]) == ("On 4 March.", 2)
    assert answer.json()["edited_at"] is not None
    assert note.revisions.get().text == CUTOVER


def test_a_stale_edit_returns_the_current_note(api, owner, editor, url, note):
    edits.edit(note, "On 4 March.", owner)
    client = api(editor)
    for answer in (
        client.patch(url, {"text": "On 5 March."}, format="json", HTTP_IF_MATCH="1"),
        client.delete(url, HTTP_IF_MATCH="1"),
    ):
        assert answer.status_code == 412
        assert answer.headers["ETag"].startswith('"2.')
        assert answer.json()["note"]["text"] == "On 4 March."
    assert client.delete(url, HTTP_IF_MATCH="x").status_code == 400


def test_a_deleted_note_is_gone(api, editor, url):
    client = api(editor)
    assert client.delete(url).status_code == 204
    assert listed(client) == []
    assert client.get(url).status_code == client.delete(url).status_code == 404
    assert client.patch(url, {"text": "Back."}, format="json").status_code == 404


def test_viewers_read_and_do_nothing_else(api, viewer, url):
    client = api(viewer)
    assert listed(client) == [CUTOVER]
    assert client.get(url).status_code == 200
    assert client.post(URL, {"text": "Mine."}, format="json").status_code == 404
    assert client.patch(url, {"text": "Mine."}, format="json").status_code == 404
    assert client.delete(url).status_code == 404
    assert Message.objects.get().text == CUTOVER


def test_writers_change_their_own_and_owners_all(api, owner, editor, project, url):
    own = notes.add_note(project, owner, "Only owners change this.")
    others = f"{URL}{own.pk}/"
    assert api(editor).patch(others, {"text": "Mine."}, format="json").status_code == 403
    assert api(editor).delete(others).status_code == 403
    assert api(owner).patch(url, {"text": "On 4 March."}, format="json").status_code == 200


def test_beyond_the_boundary_there_is_nothing(api, owner, stranger, project, url, note):
    other = create_project(stranger, name="Other", slug="other")
    client = api(stranger)
    elsewhere = url.replace("billing", "other")
    for address in (URL, url, elsewhere):
        assert client.get(address).status_code == 404
    assert client.patch(elsewhere, {"text": "Mine."}, format="json").status_code == 404
    assert client.delete(elsewhere).status_code == 404
    assert api(owner, project=create_project(owner, name="Third")).get(URL).status_code == 404
    assert notes.notes_for(stranger, other).count() == 0


def test_neither_private_notes_nor_chats_are_notes_of_others(api, owner, session, url, note):
    posted = post_message(session, "This is no note.")
    assert api(owner).get(f"{URL}{posted.pk}/").status_code == 404
    sessions.update_session(note.session, visibility=Visibility.PRIVATE)
    assert listed(api(owner)) == []
    assert api(owner).get(url).status_code == 404


def test_many_take_no_more_queries(api, owner, editor, project, django_assert_num_queries):
    client = api(owner)
    for number in range(12):
        notes.add_note(project, (owner, editor)[number % 2], f"Note {number}")
    with django_assert_num_queries(3):
        assert len(listed(client)) == 12
