"""The page of a chat: what it shows, and to whom."""

from datetime import UTC, datetime

import pytest

from chat.conversations.edits import delete, edit, react
from chat.conversations.generation import finalise
from chat.conversations.lookups import TRUNCATED
from chat.conversations.messages import ask, begin_reply, draft, post_message, post_messages
from chat.models import Message, Role, Session, Status, Visibility
from tests.chat.pages.page_content import page, queries
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_viewer_reads_but_gets_no_composer(client, viewer, session, url):
    assert 'name="content"' not in page(client, viewer, "/projects/billing/")
    assert 'name="content"' not in page(client, viewer, url)
    assert client.post(f"{url}messages/", {"content": "Hello"}).status_code == 404
    assert client.post("/projects/billing/chats/", {"content": "Hello"}).status_code == 404


def test_a_browser_does_not_store_a_chat(client, owner, url):
    client.force_login(owner)
    assert client.get(url)["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("status", "error", "offered"),
    [
        (Status.COMPLETE, TRUNCATED, True),
        (Status.COMPLETE, "", False),
        (Status.FAILED, TRUNCATED, False),
    ],
)
def test_a_reply_that_was_cut_off_can_be_continued(
    client, owner, viewer, session, url, status, error, offered
):
    _, reply = ask(session, "When?", owner)
    Message.objects.filter(pk=reply.pk).update(status=status, text="On Mon", error=error)
    assert ('data-action="continue"' in page(client, owner, url)) == offered
    assert 'data-action="continue"' not in page(client, viewer, url)
    # Pages that end at a message are not at the end of the chat.
    assert 'data-action="continue"' not in page(client, owner, f"{url}?through=2")


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
    from projects.services import create_project

    create_project(owner, name="Other", slug="other")
    client.force_login(owner)
    assert client.get(f"/projects/other/chats/{session.pk}/").status_code == 404


def test_only_the_path_that_counts_is_shown(client, owner, session, url):
    question = post_message(session, "When?", author=owner)
    for text in ("On Monday.", "On Tuesday."):
        post_messages(session, [draft(text, role=Role.ASSISTANT, parent=question)])
    text = page(client, owner, url)
    assert "On Tuesday." in text
    assert "On Monday." not in text


def test_a_message_in_another_name_shows_who_recorded_it(client, owner, editor, session, url):
    post_message(session, "Recorded.", author=editor, author_name="Ana")
    for user in (owner, editor):
        text = " ".join(page(client, user, url).split())
        assert "<b> Ana </b> <span> · recorded by edgar </span>" in text
    Message.objects.update(author_name="", role=Role.ASSISTANT)
    client.cookies["django_language"] = "de"
    text = " ".join(page(client, owner, url).split())
    client.cookies.clear()
    assert "<b> Assistent </b> <span> · aufgezeichnet von edgar </span>" in text
    Message.objects.update(author_name="edgar", role=Role.USER)
    text = page(client, editor, url)
    assert "recorded by" not in text and "You" in text


def test_a_long_chat_shows_its_latest_messages_and_leads_to_the_earlier(
    client, owner, session, url
):
    post_messages(session, [draft(f"Number {n}.", author=owner) for n in range(1, 126)])
    text = page(client, owner, url)
    assert text.count("<article") == 50
    assert "Number 76." in text
    assert "Number 75." not in text
    assert "?through=75#latest" in text
    text = page(client, owner, f"{url}?through=75")
    assert text.count("<article") == 50
    assert "Number 26." in text
    assert 'name="content"' not in text
    text = page(client, owner, f"{url}?through=25")
    assert "Show earlier messages" not in text


@pytest.mark.parametrize("through", ["0", "x", "-1", "9" * 40])
def test_a_place_that_is_not_there_gets_404(client, owner, session, url, through):
    client.force_login(owner)
    assert client.get(f"{url}?through={through}").status_code == 404


def test_the_prompt_of_the_next_reply_is_shown(client, owner, session, url):
    post_messages(
        session, [draft("When?", author=owner), draft("On Thursday.", role=Role.ASSISTANT)]
    )
    text = page(client, owner, f"{url}prompt/")
    assert "Instructions" in text
    assert "This chat so far" in text
    assert "On Thursday." in text
    drawer = client.get(f"{url}prompt/?part=drawer").content.decode()
    assert "<html" not in drawer
    assert "On Thursday." in drawer


def test_the_demo_model_says_what_it_is(client, owner, project, session, url, settings):
    settings.CHAT_MODEL = "demo"
    text = page(client, owner, url)
    assert "SmolLM2-135M" in text
    assert "To use a real model" in text
    project.chat_model = "openai-chat:gpt-5-mini"
    project.save()
    assert "SmolLM2-135M" not in page(client, owner, url)


def test_only_owners_see_how_to_set_a_model(client, owner, editor, viewer, session, url, settings):
    settings.CHAT_MODEL = "demo"
    for user in (editor, viewer):
        for path in (url, "/projects/billing/"):
            text = page(client, user, path)
            assert "SmolLM2-135M" in text
            assert "To use a real model" not in text
    assert "To use a real model" in page(client, owner, "/projects/billing/")


def test_pages_carry_no_inline_style_or_script(client, owner, failed, url):
    for path in ("/projects/billing/", url, f"{url}prompt/"):
        text = page(client, owner, path)
        assert " style=" not in text
        assert "<script>" not in text


def test_a_chat_takes_the_same_queries_however_many_messages(client, owner, editor, session, url):
    def turn_drafts(times: int) -> list[Message]:
        pair = [("When?", owner, Role.USER), ("Thursday.", None, Role.ASSISTANT)]
        return [draft(text, author=author, role=role) for text, author, role in pair * times]

    client.force_login(owner)
    post_messages(session, turn_drafts(2))
    few = queries(client, url)
    post_messages(session, [*turn_drafts(20), draft("And?", author=editor)])
    Session.objects.create(project=session.project, creator=owner)
    assert queries(client, url) == few


def test_a_page_takes_the_same_queries_however_much_became_of_its_messages(
    client, owner, editor, session, url
):
    client.force_login(owner)
    question, reply = ask(session, "When?", owner)
    finalise(reply, "Thursday.", Status.COMPLETE, {})
    few = queries(client, url)
    for number in range(10):
        _, reply = ask(session, f"And {number}?", editor)
        finalise(reply, "Thursday.", Status.COMPLETE, {})
        second_reply = begin_reply(reply.parent)
        finalise(second_reply, "Friday.", Status.COMPLETE, {})
        for user in (owner, editor):
            react(second_reply, user, "👍", True)
        edit(second_reply, "Saturday.", editor)
    delete(question)
    assert queries(client, url) == few
    assert queries(client, f"{url}?part=turns&since=1") <= few


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


def test_the_head_tells_who_answers_and_what_it_took(client, owner, session, url):
    reply = draft(
        "On Monday.", role=Role.ASSISTANT, input_tokens=1_200, output_tokens=34, cost="0.0125"
    )
    post_messages(session, [draft("When?", author=owner), reply])
    page_text = page(client, owner, url)
    assert f"{session.project.chat_model_name}</a>· 1,234 tokens · $0.013" in compact(page_text)
