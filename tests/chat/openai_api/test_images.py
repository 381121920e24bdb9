"""Images in a request: shown to the model, and kept where the conversation is."""

import base64
import io
from contextlib import suppress
from urllib.request import Request, urlopen

import openai
import pytest
from PIL import Image

from tests.addresses import NEVER_CONNECTED
from tests.chat.pictures import picture
from tests.receiver import Reply


def inline(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


RED = inline(picture())
OTHER = inline(picture(size=(50, 20)))


def looking(text: str, *addresses: str) -> dict:
    image_parts = [
        {"type": "image_url", "image_url": {"url": address, "detail": "low"}}
        for address in addresses
    ]
    return {"role": "user", "content": [{"type": "text", "text": text}, *image_parts]}


def prompt_image_sizes(strata) -> list[tuple[int, int]]:
    """The sizes of the images that the model was shown last."""
    sizes = []
    for message in strata.model.requests[-1]["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                head, _, data = part["image_url"]["url"].partition(",")
                assert head.startswith("data:image/")
                sizes.append(Image.open(io.BytesIO(base64.b64decode(data))).size)
    return sizes


def test_an_image_is_shown(strata, say):
    say([looking("What is this?", RED)])
    assert prompt_image_sizes(strata) == [(40, 30)]


def test_an_image_of_a_conversation_is_kept_and_shown_again(strata, slug, say):
    say([looking("What is this?", RED)], session="seen")
    say("And what colour has it?", session="seen")
    assert prompt_image_sizes(strata) == [(40, 30)]
    [session] = strata.sessions(slug)
    [attachment] = strata.messages(session)[0]["attachments"]
    assert (attachment["width"], attachment["height"]) == (40, 30)
    http_request = Request(
        f"{strata.url}{attachment['url']}", headers={"Authorization": f"Bearer {strata.token}"}
    )
    with urlopen(http_request) as answer:
        assert Image.open(io.BytesIO(answer.read())).size == (40, 30)


def test_the_same_words_to_another_image_are_another_question(strata, slug, say):
    say([looking("What is this?", RED)], session="seen")
    say([looking("What is this?", RED)], session="seen")
    say([looking("What is this?", OTHER)], session="seen")
    roles = [role for role, _ in strata.stored_turns(slug)]
    assert roles == ["user", "assistant", "assistant", "user", "assistant"]


def test_images_of_earlier_turns_come_along(strata, slug, say, assistant, user):
    messages = [looking("What is this?", RED), assistant("A flag."), user("Of which country?")]
    say(messages)
    assert prompt_image_sizes(strata) == [(40, 30)]
    say(messages, session="moved")
    assert prompt_image_sizes(strata) == [(40, 30)]


def test_without_a_conversation_nothing_is_kept(strata, slug, say):
    say([looking("What is this?", RED)])
    assert strata.sessions(slug) == []


def test_an_image_alone_is_a_message(strata, slug, say):
    image_parts = {"type": "image_url", "image_url": {"url": RED}}
    say([{"role": "user", "content": [image_parts]}], session="seen")
    assert prompt_image_sizes(strata) == [(40, 30)]


def test_only_the_newest_of_many_images_are_shown(strata, say, assistant):
    messages = []
    for number in range(23):
        messages += [
            looking(f"And {number}?", inline(picture(size=(40 + number, 30)))),
            assistant("Yes."),
        ]
    say([*messages, looking("This?", RED)])
    assert len(prompt_image_sizes(strata)) == 20
    assert prompt_image_sizes(strata)[-2:] == [(62, 30), (40, 30)]


def test_only_the_newest_of_many_images_are_stored(strata, slug, say, assistant):
    """Decoding as many as fit into a request would take hours."""
    messages = []
    for number in range(23):
        messages += [
            looking(f"And {number}?", inline(picture(size=(50 + number, 30)))),
            assistant("Yes."),
        ]
    say([*messages, looking("This?", RED)], session="many")
    say("And this?", session="many")
    assert len(prompt_image_sizes(strata)) == 20
    [session] = strata.sessions(slug)
    [*older, last, _reply, _question, _answer] = strata.messages(session)
    assert [len(message["attachments"]) for message in older[::2]] == [0] * 4 + [1] * 19
    assert len(last["attachments"]) == 1


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("data:image/png;base64,!!!", "invalid_image"),
        (inline(b"<svg/>", "image/svg+xml"), "invalid_image"),
        (inline(b""), "invalid_image"),
        ("data:,hello", "invalid_image"),
        ("file:///etc/passwd", "invalid_image_url"),
        ("ftp://example.org/a.png", "invalid_image_url"),
        ("https://", "invalid_image_url"),
        ("red.png", "invalid_image_url"),
        ("http://169.254.169.254/latest/meta-data/", "invalid_image_url"),
        ("http://10.0.0.1/a.png", "invalid_image_url"),
    ],
)
@pytest.mark.parametrize("session", ["", "refused"])
def test_a_file_that_is_no_image_is_refused(strata, slug, say, address, code, session):
    with pytest.raises(openai.BadRequestError) as refused:
        say([looking("What is this?", address)], session=session)
    assert refused.value.code == code
    assert strata.sessions(slug) == []
    assert strata.model.requests == []


def test_too_many_images_are_refused(say):
    with pytest.raises(openai.BadRequestError, match="at most 10 images"):
        say([looking("Look", *[RED] * 11)], session="many")


def test_an_image_elsewhere_is_fetched(strata, say, receiver):
    receiver.reply = Reply(200, {"Content-Type": "image/png"}, picture(size=(33, 22)))
    say([looking("What is this?", f"{receiver.url}/red.png")])
    assert prompt_image_sizes(strata) == [(33, 22)]


@pytest.mark.parametrize(
    "reply",
    [Reply(404), Reply(302, {"Location": "http://127.0.0.1/"}), Reply(200, {}, b"<html>")],
)
def test_a_remote_file_that_is_no_image_is_refused(say, receiver, reply):
    receiver.reply = reply
    with pytest.raises(openai.BadRequestError):
        say([looking("What is this?", f"{receiver.url}/red.png")])


def test_no_image_is_fetched_from_inside(connector):
    from chat.openai_api.images import ImageLoader
    from projects.core.errors import InvalidInputError

    fetched = []
    for address in NEVER_CONNECTED:
        with suppress(InvalidInputError):
            ImageLoader().load([address])
            fetched.append(address)
    assert (fetched, connector.connections) == ([], [])
