"""The pages of a project's chats."""

import json
import re
from datetime import UTC, datetime

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext

from chat import streams
from chat.changes import delete, edit, react
from chat.models import Message, Role, Session, Status, Visibility
from chat.models.sessions import SessionStatus
from chat.replies import ask, begin_reply, draft, finalise, post_message, post_messages
from chat.sessions import update_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(
        project=project, creator=owner, title="The cutover", visibility=Visibility.PROJECT
    )


@pytest.fixture
def url(session) -> str:
    return f"/projects/billing/chats/{session.pk}/"


@pytest.fixture
def send():
    """Posts a form as `user` in an event loop, as under ASGI, until every reply is said."""

    def run(user, url: str, form: dict, accept: str = "text/html") -> tuple[object, str]:
        async def talk():
            client = AsyncClient()
            await client.aforce_login(user)
            response = await client.post(url, form, headers={"Accept": accept})
            body = ""
            if response.streaming:
                body = b"".join([part async for part in response.streaming_content]).decode()
            await streams.settle()
            return response, body

        return async_to_sync(talk)()

    return run


def events(text: str) -> list[tuple[str, str]]:
    """(event, data) of each event; the lines of a text are put together."""
    found = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            name, *lines = block.split("\n")
            data = "\n".join(line.removeprefix("data: ") for line in lines)
            found.append((name.removeprefix("event: "), data))
    return found


def page(client, user, url: str) -> str:
    client.force_login(user)
    return client.get(url).content.decode()


def failed(session: Session, owner) -> Message:
    _, reply = ask(session, "When?", owner)
    finalise(reply, "", Status.FAILED, {"error": "The model did not answer in time."})
    return reply


def test_a_project_shows_its_chats_and_where_to_begin(client, owner, session):
    text = page(client, owner, "/projects/billing/")
    assert "The cutover" in text
    assert 'name="content"' in text


def test_a_viewer_reads_but_gets_no_composer(client, viewer, session, url):
    assert 'name="content"' not in page(client, viewer, "/projects/billing/")
    assert 'name="content"' not in page(client, viewer, url)
    assert client.post(f"{url}messages/", {"content": "Hello"}).status_code == 404
    assert client.post("/projects/billing/chats/", {"content": "Hello"}).status_code == 404


def test_a_private_chat_is_not_there_for_others(client, editor, session, url):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert "The cutover" not in page(client, editor, "/projects/billing/")
    for part in ("", "prompt/"):
        assert client.get(url + part).status_code == 404
    assert client.post(f"{url}messages/", {"content": "Hello"}).status_code == 404
    assert client.post(f"{url}edit/", {"title": "Mine"}).status_code == 404


def test_a_stranger_gets_404(client, owner, stranger, session, url):
    _, reply = ask(session, "When?", owner)
    client.force_login(stranger)
    assert client.get("/projects/billing/").status_code == 404
    assert client.get(url).status_code == 404
    assert client.get(f"{url}prompt/").status_code == 404
    assert client.get(f"/messages/{reply.pk}/stream/").status_code == 404
    assert client.post(f"/messages/{reply.pk}/regenerate/").status_code == 404


def test_a_chat_is_found_in_its_own_project_only(client, owner, session):
    from projects.creation import create_project

    create_project(owner, name="Other", slug="other")
    client.force_login(owner)
    assert client.get(f"/projects/other/chats/{session.pk}/").status_code == 404


def test_the_first_message_begins_a_chat(send, owner, project, scripted):
    scripted.say("It stays.")
    form = {"content": "Does the replica stay?", "visibility": "project"}
    response, _ = send(owner, "/projects/billing/chats/", form)
    made = Session.objects.get()
    assert response["Location"] == f"/projects/billing/chats/{made.pk}/#latest"
    assert (made.title, made.visibility) == ("Does the replica stay?", Visibility.PROJECT)
    assert list(made.messages.values_list("text", flat=True)) == [
        "Does the replica stay?",
        "It stays.",
    ]


def test_a_chat_is_shared_with_the_project_unless_told_otherwise(send, owner, project, scripted):
    send(owner, "/projects/billing/chats/", {"content": "Hello"})
    assert Session.objects.get().visibility == Visibility.PROJECT


def test_without_a_script_a_message_is_answered_by_way_of_the_page(
    send, client, owner, session, url, scripted
):
    scripted.say("**Thursday.**")
    response, _ = send(owner, f"{url}messages/", {"content": "When?"})
    assert response["Location"] == f"{url}#latest"
    text = page(client, owner, url)
    assert "<strong>Thursday.</strong>" in text
    assert 'http-equiv="refresh"' not in text


def test_a_reply_under_way_is_followed_and_reloaded_without_a_script(client, owner, session, url):
    _, reply = ask(session, "When?", owner)
    text = page(client, owner, url)
    assert f'data-stream="/messages/{reply.pk}/stream/"' in text
    assert '<noscript><meta http-equiv="refresh" content="2;url=' in text


def test_a_reply_streams_as_pieces_and_ends_as_rendered_markdown(
    send, owner, session, url, scripted
):
    scripted.say("On **Thursday**\n\nat nine.", delay=0.02)
    form = {"content": "When <b>?"}
    response, body = send(owner, f"{url}messages/", form, "text/event-stream")
    assert response["Content-Type"] == "text/event-stream"
    told = events(body)
    assert told[0][0] == "message"
    assert "When &lt;b&gt;?" in told[0][1]
    assert "data-stream=" in told[0][1]
    pieces = [json.loads(data)["text"] for event, data in told if event == "delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == "On **Thursday**\n\nat nine."
    assert told[-1][0] == "done"
    assert "<strong>Thursday</strong>" in told[-1][1]
    assert "Regenerate" in told[-1][1]


def test_a_failure_is_told_with_its_reason_and_a_way_to_retry(send, owner, session, url, scripted):
    scripted.status(401)
    _, body = send(owner, f"{url}messages/", {"content": "When?"}, "text/event-stream")
    event, data = events(body)[-1]
    assert event == "error"
    assert "refused the key" in json.loads(data)["reply"]
    assert "Retry" in json.loads(data)["reply"]


def test_a_failed_reply_is_retried(send, client, owner, session, url, scripted):
    reply = failed(session, owner)
    text = page(client, owner, url)
    assert "The model did not answer in time." in text
    assert f"/messages/{reply.pk}/regenerate/" in text
    scripted.say("Thursday.")
    send(owner, f"/messages/{reply.pk}/regenerate/", {})
    text = page(client, owner, url)
    assert "Thursday." in text
    assert "The model did not answer in time." not in text


def test_only_the_path_that_counts_is_shown(client, owner, session, url):
    asked = post_message(session, "When?", author=owner)
    for text in ("On Monday.", "On Tuesday."):
        post_messages(session, [draft(text, role=Role.ASSISTANT, parent=asked)])
    text = page(client, owner, url)
    assert "On Tuesday." in text
    assert "On Monday." not in text


def test_what_a_person_said_is_not_regenerated(client, owner, session):
    said = post_message(session, "When?", author=owner)
    client.force_login(owner)
    answer = client.post(f"/messages/{said.pk}/regenerate/", follow=True)
    assert "Only a reply can be regenerated." in answer.content.decode()
    assert Message.objects.count() == 1


@pytest.mark.parametrize("content", ["", "  \n "])
def test_nothing_is_not_a_message(send, owner, session, url, content):
    response, _ = send(owner, f"{url}messages/", {"content": content})
    assert response.status_code == 400
    assert "Write something first." in response.content.decode()
    response, _ = send(owner, f"{url}messages/", {"content": content}, "text/event-stream")
    assert json.loads(response.content) == {"detail": "Write something first."}
    assert not Message.objects.exists()


def test_words_are_kept_to_the_letter_and_shown_as_text(
    send, client, owner, session, url, scripted
):
    send(owner, f"{url}messages/", {"content": "  <script>alert(1)</script>\n  x"})
    assert session.messages.order_by("seq").first().text == "  <script>alert(1)</script>\n  x"
    assert "  &lt;script&gt;alert(1)&lt;/script&gt;\n  x" in page(client, owner, url)


def test_a_long_chat_shows_its_latest_messages_and_leads_to_the_earlier(
    client, owner, session, url
):
    post_messages(session, [draft(f"Number {n}.", author=owner) for n in range(1, 251)])
    text = page(client, owner, url)
    assert text.count("<article") == 100
    assert "Number 151." in text
    assert "Number 150." not in text
    assert "?through=150#latest" in text
    text = page(client, owner, f"{url}?through=150")
    assert text.count("<article") == 100
    assert "Number 51." in text
    assert 'name="content"' not in text
    text = page(client, owner, f"{url}?through=50")
    assert "Show earlier" not in text


@pytest.mark.parametrize("through", ["0", "x", "-1", "9" * 40])
def test_a_place_that_is_not_there_gets_404(client, owner, session, url, through):
    client.force_login(owner)
    assert client.get(f"{url}?through={through}").status_code == 404


def test_what_the_next_reply_would_be_told_is_shown(client, owner, session, url):
    post_messages(
        session, [draft("When?", author=owner), draft("On Thursday.", role=Role.ASSISTANT)]
    )
    text = page(client, owner, f"{url}prompt/")
    assert "Who it is" in text
    assert "This chat so far" in text
    assert "On Thursday." in text
    drawer = client.get(f"{url}prompt/?part=drawer").content.decode()
    assert "<html" not in drawer
    assert "On Thursday." in drawer


def test_a_chat_is_renamed_shared_and_kept_out_of_memory(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "Renamed", "visibility": "private", "status": "active"}
    # The box was ticked when the page was made.
    form |= {"initial-remembered": "True", "initial-history_limit": ""}
    assert client.post(f"{url}edit/", form).status_code == 302
    before = session.version
    session.refresh_from_db()
    assert (session.title, session.visibility) == ("Renamed", Visibility.PRIVATE)
    assert not session.remembered
    assert session.version > before


def test_another_editor_does_not_change_my_chat(client, editor, session, url):
    assert "Chat settings" not in page(client, editor, url)
    form = {"title": "Mine now", "visibility": "project", "status": "active"}
    assert client.post(f"{url}edit/", form).status_code == 404


def test_a_wrong_visibility_is_refused_on_the_page(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "x", "visibility": "everyone", "status": "active"}
    response = client.post(f"{url}edit/", form)
    assert response.status_code == 400
    assert "not one of the available choices" in response.content.decode()


def test_a_closed_chat_takes_no_more(client, owner, session, url):
    Session.objects.update(status=SessionStatus.CLOSED)
    text = page(client, owner, url)
    assert "This chat is closed." in text
    assert 'name="content"' not in text
    assert client.post(f"{url}messages/", {"content": "Hello"}).status_code == 404


def test_the_demo_model_says_what_it_is(client, owner, project, session, url, settings):
    settings.CHAT_MODEL = "demo"
    text = page(client, owner, url)
    assert "SmolLM2-135M" in text
    assert "STRATA_CHAT_MODEL" in text
    project.chat_model = "openai-chat:gpt-5-mini"
    project.save()
    assert "SmolLM2-135M" not in page(client, owner, url)


def test_pages_carry_no_inline_style_or_script(client, owner, session, url):
    failed(session, owner)
    for path in ("/projects/billing/", url, f"{url}prompt/"):
        text = page(client, owner, path)
        assert " style=" not in text
        assert "<script>" not in text


def queries(client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_the_project_page_takes_the_same_queries_however_many_chats(
    client, owner, editor, project, session
):
    client.force_login(owner)
    few = queries(client, "/projects/billing/")
    for number in range(20):
        Session.objects.create(
            project=project,
            creator=[owner, editor][number % 2],
            title=f"Chat {number}",
            visibility=Visibility.PROJECT,
        )
    assert queries(client, "/projects/billing/") == few


def test_a_chat_takes_the_same_queries_however_many_messages(client, owner, editor, session, url):
    def said(times: int) -> list[Message]:
        pair = [("When?", owner, Role.USER), ("Thursday.", None, Role.ASSISTANT)]
        return [draft(text, author=who, role=role) for text, who, role in pair * times]

    client.force_login(owner)
    post_messages(session, said(2))
    few = queries(client, url)
    post_messages(session, [*said(20), draft("And?", author=editor)])
    Session.objects.create(project=session.project, creator=owner)
    assert queries(client, url) == few


def test_a_page_takes_the_same_queries_however_much_became_of_its_messages(
    client, owner, editor, session, url
):
    client.force_login(owner)
    asked, reply = ask(session, "When?", owner)
    finalise(reply, "Thursday.", Status.COMPLETE, {})
    few = queries(client, url)
    for number in range(10):
        _, reply = ask(session, f"And {number}?", editor)
        finalise(reply, "Thursday.", Status.COMPLETE, {})
        again = begin_reply(reply.parent)
        finalise(again, "Friday.", Status.COMPLETE, {})
        for user in (owner, editor):
            react(again, user, "👍", True)
        edit(again, "Saturday.", editor)
    delete(asked)
    assert queries(client, url) == few
    assert queries(client, f"{url}?part=turns&since=1") <= few


def test_the_turns_alone_bring_a_page_up_to_date(client, owner, session, url):
    post_messages(session, [draft(f"Number {n}.", author=owner) for n in range(1, 121)])
    client.force_login(owner)
    text = client.get(f"{url}?part=turns&since=15").content.decode()
    assert "<html" not in text
    assert f'data-version="{session.version}"' in text
    assert 'data-title="The cutover"' in text
    assert text.count("<article") == 106
    assert "Number 15." in text
    assert "Number 14." not in text
    assert "?through=14#latest" in text
    assert client.get(f"{url}?part=turns&since=x").status_code == 404


def test_a_turn_has_another_key_when_it_looks_different(client, owner, editor, session, url):
    said = post_message(session, "When?", author=owner)
    client.force_login(owner)

    def key() -> str:
        text = client.get(f"{url}?part=turns").content.decode()
        return re.search(r'data-key="(\w+)"', text)[1]

    keys = [key()]
    react(said, editor, "👍", True)
    keys.append(key())
    react(said, owner, "👍", True)
    keys.append(key())
    edit(said, "When, please?", owner)
    keys.append(key())
    delete(said)
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[-1]


def test_days_are_those_of_the_projects_zone(client, owner, project, session, url):
    project.timezone = "Pacific/Auckland"
    project.save()
    for hour in (9, 10, 12):
        moment = datetime(2026, 3, 2, hour, 30, tzinfo=UTC)
        post_message(session, f"At {hour}.", author=owner, created_at=moment)
    text = page(client, owner, f"{url}?part=turns")
    assert text.count('class="date"') == 2
    assert "Monday, 2 March 2026" in text
    assert "Tuesday, 3 March 2026" in text


def test_a_page_is_told_of_each_version(owner, editor, session, url):
    async def listen() -> list[str]:
        client = AsyncClient()
        await client.aforce_login(owner)
        response = await client.get(f"{url}events/?version={session.version}")
        assert response["Content-Type"] == "text/event-stream"
        heard = []
        async for part in response.streaming_content:
            heard.append(part.decode())
            if len(heard) == 1:
                await sync_to_async(post_message)(session, "Hello", author=editor)
            elif heard[-1].startswith("event"):
                return heard
        return heard

    heard = async_to_sync(listen)()
    assert heard[0] == ": ping\n\n"
    assert heard[-1] == "event: version\ndata: 1\n\n"


def test_strangers_are_told_of_no_version(client, stranger, owner, session, url):
    client.force_login(stranger)
    assert client.get(f"{url}events/").status_code == 404
    assert client.get(f"{url}?part=turns").status_code == 404
    client.force_login(owner)
    assert client.get(f"{url}events/?version=x").status_code == 404


def test_pinned_chats_come_first_and_archived_ones_behind_a_link(client, owner, project, session):
    pinned = Session.objects.create(project=project, creator=owner, title="Old", pinned=True)
    Session.objects.filter(pk=pinned.pk).update(last_activity_at=datetime(2020, 1, 1, tzinfo=UTC))
    text = page(client, owner, "/projects/billing/")
    assert text.index("Old") < text.index("The cutover")
    assert "Archived chats" not in text
    update_session(session, archived=True)
    text = page(client, owner, "/projects/billing/")
    assert "The cutover" not in text
    assert 'href="?archived"' in text
    text = page(client, owner, "/projects/billing/?archived")
    assert "The cutover" in text
    assert "New chat" in text


def test_chats_are_found_and_the_words_marked(client, owner, editor, project, session):
    post_message(session, "The **exports** run at four.", author=owner)
    private = Session.objects.create(
        project=project, creator=owner, title="Secret exports", visibility=Visibility.PRIVATE
    )
    text = page(client, owner, "/projects/billing/?q=exp")
    assert "The <mark>exports</mark> run at four." in text
    assert f"/projects/billing/chats/{session.pk}/?through=1#m1" in text
    assert str(private.pk) in text
    text = page(client, editor, "/projects/billing/?q=exp")
    assert "Secret" not in text
    assert "<mark>exports</mark>" in text
    text = page(client, owner, "/projects/billing/?q=<script>")
    assert "Nothing was found." in text
    assert "<script>" not in text


def test_searching_takes_the_same_queries_however_much_is_found(client, owner, project, session):
    client.force_login(owner)
    post_message(session, "The exports", author=owner)
    few = queries(client, "/projects/billing/?q=exports")
    for number in range(10):
        more = Session.objects.create(project=project, creator=owner, title=str(number))
        post_message(more, "The exports", author=owner)
    assert queries(client, "/projects/billing/?q=exports") == few


def test_a_chat_is_pinned_archived_limited_and_closed(client, owner, session, url):
    client.force_login(owner)
    form = {"title": "The cutover", "visibility": "project", "status": "closed"}
    form |= {"pinned": "on", "archived": "on", "history_limit": "7", "remembered": "on"}
    assert client.post(f"{url}edit/", form).status_code == 302
    session.refresh_from_db()
    assert (session.pinned, session.status, session.history_limit) == (True, "closed", 50)
    assert session.archived_at
    assert session.remembered


def test_an_old_page_of_settings_undoes_nothing(client, owner, session, url):
    text = page(client, owner, url)
    shown = dict(re.findall(r'name="(initial-\w+)" value="([^"]*)"', text))
    update_session(session, title="Somebody else’s", pinned=True)
    form = {"title": "The cutover", "visibility": "private", "status": "active"}
    client.post(f"{url}edit/", form | shown | {"remembered": "on"})
    session.refresh_from_db()
    assert (session.title, session.pinned) == ("Somebody else’s", True)
    assert (session.visibility, session.remembered) == (Visibility.PRIVATE, True)


def test_a_chat_is_cleared_and_deleted_once_that_is_confirmed(client, owner, session, url):
    post_message(session, "When?", author=owner)
    assert "Clear this chat?" in page(client, owner, f"{url}clear/")
    assert client.post(f"{url}clear/")["Location"] == url
    assert "Nothing has been said yet." in page(client, owner, url)
    assert "Delete this chat?" in page(client, owner, f"{url}delete/")
    assert client.post(f"{url}delete/")["Location"] == "/projects/billing/"
    assert not Session.objects.standing().exists()


def test_a_chat_is_not_cleared_while_a_reply_is_being_said(client, owner, session, url):
    ask(session, "When?", owner)
    client.force_login(owner)
    text = client.post(f"{url}clear/", follow=True).content.decode()
    assert "Stop it first." in text


def test_another_editor_neither_clears_nor_deletes_my_chat(client, editor, session, url):
    client.force_login(editor)
    for what in ("clear", "delete"):
        assert client.get(f"{url}{what}/").status_code == 404
        assert client.post(f"{url}{what}/").status_code == 404
    assert Session.objects.exists()
