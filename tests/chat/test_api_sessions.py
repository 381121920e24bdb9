"""/api/v1/…/sessions/: conversations, who sees them and who changes them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations.edits import choose, delete
from chat.conversations.messages import NewBranch, draft, post_message, post_messages
from chat.models import Session, Visibility
from chat.signals import session_closed, session_deleted
from projects.services import create_project

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/sessions/"


@pytest.fixture
def shared(project, editor) -> Session:
    return Session.objects.create(
        project=project, creator=editor, title="Plans", visibility=Visibility.PROJECT
    )


@pytest.fixture
def private(project, editor) -> Session:
    return Session.objects.create(
        project=project, creator=editor, title="Mine", visibility=Visibility.PRIVATE
    )


def session_url(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/"


def listen(signal, request) -> list[Session]:
    received: list[Session] = []

    def hear(session, **kwargs):
        received.append(session.pk)

    signal.connect(hear)
    request.addfinalizer(lambda: signal.disconnect(hear))
    return received


def test_a_writer_opens_a_session(api, editor):
    answer = api(editor).post(URL, {"title": "Plans", "visibility": "private"}, format="json")
    assert answer.status_code == 201
    payload = answer.json()
    assert (payload["project"], payload["creator"], payload["title"]) == (
        "billing",
        "edgar",
        "Plans",
    )
    assert (payload["visibility"], payload["remembered"], payload["status"]) == (
        "private",
        True,
        "active",
    )
    assert (payload["message_count"], payload["unsummarized_count"], payload["last_role"]) == (
        0,
        0,
        None,
    )
    assert payload["history_limit"] is None


def test_a_viewer_and_a_stranger_open_none(api, viewer, stranger):
    assert api(viewer).post(URL, {}, format="json").status_code == 404
    assert api(stranger).post(URL, {}, format="json").status_code == 404
    assert api(stranger).get(URL).status_code == 404


@pytest.mark.parametrize(("query", "stored"), [(1, 50), (50, 50), (500, 500), (10**12, 1000)])
def test_the_history_limit_is_moved_into_its_range(api, editor, query, stored):
    answer = api(editor).post(URL, {"history_limit": query}, format="json")
    assert answer.json()["history_limit"] == stored
    assert Session.objects.get().history_limit == stored


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"visibility": "world"}, "visibility"),
        ({"status": "gone"}, "status"),
        ({"history_limit": "many"}, "history_limit"),
        ({"title": "x" * 201}, "title"),
    ],
)
def test_invalid_fields_of_a_session_are_refused_by_name(api, editor, fields, field):
    answer = api(editor).post(URL, fields, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == [field]


def test_others_see_the_shared_and_only_the_shared(api, owner, editor, viewer, shared, private):
    def visible_titles(user) -> list[str]:
        return [result["title"] for result in api(user).get(URL).json()["results"]]

    assert visible_titles(editor) == ["Mine", "Plans"]
    assert visible_titles(owner) == visible_titles(viewer) == ["Plans"]
    assert api(owner).get(session_url(private)).status_code == 404
    assert api(viewer).get(session_url(shared)).status_code == 200


def test_a_session_counts_its_messages_and_those_without_summary(api, editor, shared):
    post_message(shared, "The cutover is on 3 March.", author=editor)
    post_message(shared, "Noted.", role="assistant")
    payload = api(editor).get(session_url(shared)).json()
    assert (payload["message_count"], payload["unsummarized_count"]) == (2, 2)
    assert (payload["last_role"], payload["version"]) == ("assistant", 2)


def test_sessions_work_without_memory(api, editor, shared, settings):
    settings.CHAT_SESSION_COUNTS = []
    post_message(shared, "The cutover is on 3 March.", author=editor)
    with CaptureQueriesContext(connection) as captured:
        payload = api(editor).get(session_url(shared)).json()
        assert api(editor).get(URL).json()["results"] == [payload]
    assert (payload["message_count"], payload["unsummarized_count"]) == (1, 0)
    assert "memory_cursor" not in str(captured.captured_queries)


def test_listing_takes_the_same_queries_for_many(
    api, owner, project, editor, django_assert_num_queries
):
    for number in range(10):
        session = Session.objects.create(
            project=project, creator=editor, visibility=Visibility.PROJECT, title=str(number)
        )
        post_message(session, "Hello", author=editor)
    client = api(owner)
    with django_assert_num_queries(3):
        assert len(client.get(URL).json()["results"]) == 10


def test_its_creator_changes_it_and_the_version_rises(api, editor, private):
    answer = api(editor).patch(
        session_url(private),
        {"title": "Ours", "visibility": "project", "version": 99},
        format="json",
    )
    assert answer.status_code == 200
    private.refresh_from_db()
    assert (private.title, private.visibility, private.version) == ("Ours", "project", 1)


def test_a_change_keeps_concurrent_messages(api, editor, private):
    post_message(private, "Hello", author=editor)
    api(editor).patch(session_url(private), {"title": "Ours"}, format="json")
    private.refresh_from_db()
    assert (private.last_seq, private.version) == (1, 2)


def test_an_owner_manages_a_shared_session_and_others_do_not(api, owner, viewer, person, shared):
    assert api(owner).patch(session_url(shared), {"title": "New"}, format="json").status_code == 200
    assert api(viewer).patch(session_url(shared), {"title": "No"}, format="json").status_code == 404
    assert api(viewer).delete(session_url(shared)).status_code == 404
    assert api(viewer).post(f"{session_url(shared)}close/").status_code == 404


def test_closing_sends_one_signal_and_a_patch_reopens(api, editor, shared, request):
    received = listen(session_closed, request)
    client = api(editor)
    assert client.post(f"{session_url(shared)}close/").json()["status"] == "closed"
    assert client.post(f"{session_url(shared)}close/").status_code == 200
    assert received == [shared.pk]
    assert client.patch(session_url(shared), {"status": "active"}, format="json").status_code == 200
    shared.refresh_from_db()
    assert shared.status == "active"


def test_deleting_sends_the_signal_before_the_rows_are_deleted(api, owner, shared, request):
    received = listen(session_deleted, request)
    post_message(shared, "Hello")
    assert api(owner).delete(session_url(shared)).status_code == 204
    assert received == [shared.pk]
    assert api(owner).get(session_url(shared)).status_code == 404


def test_a_token_for_another_project_sees_nothing(api, editor, shared):
    client = api(editor, project=create_project(editor, name="Other"))
    assert client.get(URL).status_code == 404
    assert client.get(session_url(shared)).status_code == 404


def test_it_is_pinned_archived_and_taken_out_again(api, editor, private, fresh):
    client = api(editor)
    payload = client.patch(
        session_url(private), {"pinned": True, "archived": True}, format="json"
    ).json()
    assert (payload["pinned"], payload["archived"], payload["version"]) == (True, True, 1)
    since = fresh(private).archived_at
    payload = client.patch(session_url(private), {"archived": True}, format="json").json()
    assert (payload["archived"], payload["version"]) == (True, 1)
    assert fresh(private).archived_at == since is not None
    payload = client.patch(session_url(private), {"archived": False}, format="json").json()
    assert (payload["archived"], fresh(private).archived_at) == (False, None)


def test_the_list_is_filtered_by_archived(api, editor, shared, private):
    client = api(editor)
    client.patch(session_url(shared), {"archived": True}, format="json")

    def titles(query: str) -> list[str]:
        return [result["title"] for result in client.get(f"{URL}{query}").json()["results"]]

    assert titles("") == ["Mine", "Plans"]
    assert titles("?archived=true") == ["Plans"]
    assert titles("?archived=false") == ["Mine"]
    assert client.get(f"{URL}?archived=maybe").status_code == 400


def test_a_title_that_was_given_is_by_hand(api, editor, fresh):
    payload = api(editor).post(URL, {}, format="json").json()
    chat_session = Session.objects.get(pk=payload["id"])
    assert not chat_session.title_by_hand
    api(editor).patch(session_url(chat_session), {"title": "Ours"}, format="json")
    assert fresh(chat_session).title_by_hand
    api(editor).patch(session_url(chat_session), {"title": ""}, format="json")
    assert not fresh(chat_session).title_by_hand


def test_a_request_without_changes_leaves_the_version(api, editor, private, fresh):
    api(editor).patch(session_url(private), {"title": "Mine", "status": "active"}, format="json")
    assert fresh(private).version == 0


def test_counts_are_of_what_stands(api, editor, shared):
    first = post_message(shared, "When?", author=editor)
    reply = post_message(shared, "In May.", role="assistant")
    post_message(shared, "A note.", role="system")
    payload = api(editor).get(session_url(shared)).json()
    assert (payload["message_count"], payload["last_role"]) == (2, "assistant")
    delete(reply)
    payload = api(editor).get(session_url(shared)).json()
    assert (payload["message_count"], payload["last_role"]) == (1, "user")
    delete(first)
    payload = api(editor).get(session_url(shared)).json()
    assert (payload["message_count"], payload["last_role"]) == (0, None)


def test_the_last_role_is_that_of_the_path(api, editor, shared):
    first = post_message(shared, "When?", author=editor)
    post_message(shared, "In May.", role="assistant")
    [message] = post_messages(
        shared, [draft("And now?", author=editor)], at=NewBranch(first.parent_id)
    )
    payload = api(editor).get(session_url(shared)).json()
    assert (payload["message_count"], payload["last_role"]) == (3, "user")
    choose(first)
    assert api(editor).get(session_url(shared)).json()["last_role"] == "assistant"
    assert message.seq == 3


@pytest.mark.parametrize("query", ["plan", "PLANS", "cutover is", "the cut", "march 3"])
def test_words_are_found_in_titles_and_messages(api, viewer, editor, shared, query):
    post_message(shared, "The cutover is on 3 March, isn't it?", author=editor)
    [result] = api(viewer).get(URL, {"q": query}).json()["results"]
    assert result["title"] == "Plans"


@pytest.mark.parametrize("query", ["cutover april", "utover", "Mine", "'", "a:* | b", "!x", "\\"])
def test_a_missing_session_is_not_found(api, viewer, editor, shared, private, query):
    post_message(shared, "The cutover is on 3 March.", author=editor)
    post_message(private, "The cutover is in April.", author=editor)
    assert api(viewer).get(URL, {"q": query}).json()["results"] == []


def test_a_deleted_session_is_not_found(api, editor, shared):
    delete(post_message(shared, "The cutover is on 3 March.", author=editor))
    assert api(editor).get(URL, {"q": "cutover"}).json()["results"] == []


@pytest.mark.parametrize("query", ["x" * 201, "a\0b"])
def test_an_invalid_search_is_refused(api, editor, project, query):
    answer = api(editor).get(URL, {"q": query})
    assert answer.status_code == 400
    assert list(answer.json()) == ["q"]


def test_a_very_long_message_is_searched_at_its_beginning(api, editor, shared):
    words = " ".join(f"word{number}" for number in range(60_000))
    post_message(shared, words, author=editor)
    assert api(editor).get(URL, {"q": "word17"}).json()["results"]
    assert not api(editor).get(URL, {"q": "word59999"}).json()["results"]


def test_searching_takes_the_same_queries_for_many(api, owner, project, django_assert_num_queries):
    for number in range(10):
        session = Session.objects.create(project=project, creator=owner, title=str(number))
        post_message(session, "The cutover", author=owner)
    client = api(owner)
    with django_assert_num_queries(3):
        assert len(client.get(URL, {"q": "cutover"}).json()["results"]) == 10


def test_members_read_a_private_chat_by_its_link_until_it_is_revoked(
    api, client, editor, viewer, private
):
    url = f"{session_url(private)}share/"
    assert api(viewer).post(url).status_code == 404
    link = api(editor).post(url).json()["url"]
    assert api(editor).post(url).json() == {"url": link}
    client.force_login(viewer)
    assert client.get(link).status_code == 200
    assert api(editor).delete(url).status_code == 204
    assert client.get(link).status_code == 404
