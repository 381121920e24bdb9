"""Post a message on the page of a chat and receive the reply."""

import json
import time

import pytest

from chat.conversations.messages import ask, post_message
from chat.models import Message
from chat.views import presenters
from tests.chat.pages.page_content import events, page
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)


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
    assert '<noscript><meta http-equiv="refresh" content="2;url=' in compact(text)


def test_a_reply_streams_as_pieces_and_ends_as_rendered_markdown(
    send, owner, session, url, scripted
):
    scripted.say("On **Thursday**\n\nat nine.", delay=0.2)
    form = {"content": "When <b>?"}
    response, body = send(owner, f"{url}messages/", form, "text/event-stream")
    assert response["Content-Type"] == "text/event-stream"
    stream_events = events(body)
    assert stream_events[0][0] == "message"
    assert "When &lt;b&gt;?" in stream_events[0][1]
    assert "data-stream=" in stream_events[0][1]
    set_so_far, tail, pieces = "", "", 0
    for event, data in stream_events[1:-1]:
        piece = json.loads(data)
        pieces += 1
        tail = piece["rest"] if event == "block" else tail + piece["text"]
        set_so_far += piece.get("html", "")
    assert pieces > 2
    # What is whole is set already; the rest are words as they came.
    assert set_so_far == "<p>On <strong>Thursday</strong></p>\n"
    assert tail == "at nine."
    assert stream_events[-1][0] == "done"
    assert "<strong>Thursday</strong>" in stream_events[-1][1]
    assert "Regenerate" in stream_events[-1][1]


def test_a_reply_that_ends_before_the_page_shows_it_is_shown_as_unfinished_first(
    send, owner, session, url, scripted, monkeypatch
):
    make_renderer = presenters.turn_renderer

    def after_the_end(request, chat_session, opening):
        for _ in range(200):
            if not Message.objects.unfinished().exists():
                break
            time.sleep(0.05)
        return make_renderer(request, chat_session, opening)

    monkeypatch.setattr(presenters, "turn_renderer", after_the_end)
    scripted.say("Thursday.")
    _, body = send(owner, f"{url}messages/", {"content": "When?"}, "text/event-stream")
    stream_events = events(body)
    assert "data-stream=" in stream_events[0][1]
    assert stream_events[-1][0] == "done"
    assert "Thursday." in stream_events[-1][1]


def test_a_failure_shows_its_reason_and_a_retry_button(send, owner, session, url, scripted):
    scripted.status(401)
    _, body = send(owner, f"{url}messages/", {"content": "When?"}, "text/event-stream")
    event, data = events(body)[-1]
    assert event == "error"
    assert "rejected the API key" in json.loads(data)["reply"]
    assert "Try again" in json.loads(data)["reply"]


def test_a_failed_reply_is_retried(send, client, owner, failed, url, scripted):
    text = page(client, owner, url)
    assert "The model did not answer in time." in text
    assert f"/messages/{failed.pk}/regenerate/" in text
    scripted.say("Thursday.")
    send(owner, f"/messages/{failed.pk}/regenerate/", {})
    text = page(client, owner, url)
    assert "Thursday." in text
    assert "The model did not answer in time." not in text


def test_the_stream_of_a_regenerated_reply_ends_with_its_text(send, owner, failed, scripted):
    scripted.say("Thursday.")
    _, body = send(owner, f"/messages/{failed.pk}/regenerate/", {}, "text/event-stream")
    stream_events = events(body)
    assert "data-stream=" in stream_events[0][1]
    assert stream_events[-1][0] == "done"
    assert "Thursday." in stream_events[-1][1]
    assert "data-stream=" not in stream_events[-1][1]


@pytest.mark.parametrize("content", ["", "  \n "])
def test_nothing_is_not_a_message(send, owner, session, url, content):
    response, _ = send(owner, f"{url}messages/", {"content": content})
    assert response.status_code == 400
    assert "Enter some text." in response.content.decode()
    response, _ = send(owner, f"{url}messages/", {"content": content}, "text/event-stream")
    assert json.loads(response.content) == {"detail": "Enter some text."}
    assert not Message.objects.exists()


LONG = "x" * 500_001


def test_a_message_that_is_too_long_stays_in_its_box_with_an_error(send, owner, session, url):
    reason = "This message is too long: 500001 characters. The limit is 500000."
    for path in (f"{url}messages/", "/projects/billing/chats/"):
        response, _ = send(owner, path, {"content": LONG})
        text = response.content.decode()
        assert response.status_code == 400
        assert reason in text
        assert f">\n{LONG}</textarea>" in text
        assert "maxlength" not in text.partition('name="content"')[2].partition(">")[0]
    response, _ = send(owner, f"{url}messages/", {"content": LONG}, "text/event-stream")
    assert json.loads(response.content)["detail"].startswith(reason)
    assert not Message.objects.exists()


def test_a_line_is_as_long_as_its_writer_sees_it(send, owner, session, url, scripted):
    send(owner, f"{url}messages/", {"content": "x\r\n" * 250_000})
    assert session.messages.first().text == "x\n" * 250_000


def test_words_are_kept_to_the_letter_and_shown_as_text(
    send, client, owner, session, url, scripted
):
    send(owner, f"{url}messages/", {"content": "  <script>alert(1)</script>\n  x"})
    assert session.messages.order_by("seq").first().text == "  <script>alert(1)</script>\n  x"
    assert "  &lt;script&gt;alert(1)&lt;/script&gt;\n  x" in page(client, owner, url)


def test_a_message_of_a_person_is_not_regenerated(client, owner, session):
    posted = post_message(session, "When?", author=owner)
    client.force_login(owner)
    answer = client.post(f"/messages/{posted.pk}/regenerate/", follow=True)
    assert "Only replies can be regenerated." in answer.content.decode()
    assert Message.objects.count() == 1
