"""Images in the pages of a chat."""

import json
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import AsyncClient
from django.utils import timezone

from chat.conversations.messages import ask
from chat.models import Attachment, Message, Session, SessionStatus, Visibility
from projects.services import create_project
from tests.chat.pictures import SVG, opened, picture
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)


def file(data: bytes | None = None, name: str = "plan.png") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data or picture())


def upload(client, url: str) -> dict:
    return client.post(f"{url}images/", {"file": file()}).json()


def test_an_image_is_uploaded_shown_and_sent(client, send, owner, session, url, scripted):
    client.force_login(owner)
    uploaded = upload(client, url)
    attachment = Attachment.objects.get()
    assert uploaded == {
        "id": str(attachment.pk),
        "url": f"{url}images/{attachment.pk}/",
        "width": 40,
        "height": 30,
    }
    form = {"content": "", "attachments": [uploaded["id"]], "descriptions": ["The “old” plan"]}
    _, body = send(owner, f"{url}messages/", form, "text/event-stream")
    assert uploaded["url"] in body
    text = client.get(url).content.decode()
    assert f'<img src="{uploaded["url"]}" alt="The “old” plan" width="40" height="30"' in compact(
        text
    )
    assert Attachment.objects.get().description == "The “old” plan"


def test_without_a_script_files_are_sent_with_the_form(send, owner, session, url, scripted):
    form = {"content": "Look", "images": [file(), file(picture("JPEG"), "b.jpg")]}
    response, _ = send(owner, f"{url}messages/", form)
    assert response["Location"] == f"{url}#latest"
    message = session.messages.first()
    assert [attachment.media_type for attachment in message.attachments.all()] == [
        "image/png",
        "image/jpeg",
    ]
    assert len(scripted.requests[-1]["messages"][-1]["content"]) == 3


def test_a_chat_begins_with_an_image(send, client, owner, project, scripted):
    form = {"content": "Look", "images": [file()], "descriptions": ["The plan"]}
    response, _ = send(owner, "/projects/billing/chats/", form)
    assert response.status_code == 302
    [image] = Session.objects.get().messages.first().attachments.all()
    assert image.description == "The plan"


def test_the_words_beside_an_image_may_be_taken_away(client, owner, session, url):
    client.force_login(owner)
    message, _ = ask(session, "Look", owner, attachments=[upload(client, url)["id"]])
    edit = f"/messages/{message.pk}/edit/"
    assert "required" not in client.get(f"{edit}?part=turn").content.decode()
    assert client.post(edit, {"content": "", "version": 1})["Location"] == f"{url}#m1"
    message.refresh_from_db()
    assert (message.text, message.attachments.count()) == ("", 1)
    assert client.post(edit, {"content": "Look!", "version": 2}).status_code == 302


@pytest.mark.parametrize("place", ["", "messages/"])
def test_a_refused_image_shows_the_reason_and_keeps_the_text(
    send, owner, project, session, url, scripted, place
):
    path = f"{url}messages/" if place else "/projects/billing/chats/"
    response, _ = send(owner, path, {"content": "My words", "images": [file(SVG)]})
    assert response.status_code == 400
    text = response.content.decode()
    assert "SVG images can contain scripts." in text
    assert "My words" in text
    assert Session.objects.count() == 1
    assert not Message.objects.exists()


def test_too_many_images_are_refused(send, owner, project, session, url):
    for path in (f"{url}messages/", "/projects/billing/chats/"):
        form = {"content": "Look", "images": [file() for _ in range(11)]}
        response, _ = send(owner, path, form)
        assert response.status_code == 400
        assert "at most 10 images" in response.content.decode()
    assert not Attachment.objects.exists()


def test_a_chat_that_cannot_begin_leaves_no_file(send, owner, project, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    form = {"content": "Look", "images": [file()], "attachments": [str(uuid4())]}
    response, _ = send(owner, "/projects/billing/chats/", form)
    assert response.status_code == 400
    assert not Session.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_image_that_was_sent_is_not_sent_again(client, send, owner, url, scripted):
    client.force_login(owner)
    form = {"content": "", "attachments": [upload(client, url)["id"]]}
    send(owner, f"{url}messages/", form)
    response, _ = send(owner, f"{url}messages/", form, "text/event-stream")
    assert response.status_code == 400
    assert "already sent" in json.loads(response.content)["detail"]
    form = {"content": "Hi", "attachments": ["x"]}
    response, _ = send(owner, f"{url}messages/", form, "text/event-stream")
    assert response.status_code == 400


def test_an_upload_that_is_refused_says_why(client, owner, url):
    client.force_login(owner)
    answer = client.post(f"{url}images/", {"file": file(SVG)})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "SVG images can contain scripts. Upload a PNG instead."
    assert client.post(f"{url}images/").status_code == 400


def test_readers_strangers_and_closed_chats_take_no_image(
    client, owner, viewer, stranger, session, url
):
    for user in (viewer, stranger):
        client.force_login(user)
        assert client.post(f"{url}images/", {"file": file()}).status_code == 404
    client.force_login(owner)
    create_project(owner, name="Other", slug="other")
    elsewhere = f"/projects/other/chats/{session.pk}/images/"
    assert client.post(elsewhere, {"file": file()}).status_code == 404
    Session.objects.update(status=SessionStatus.CLOSED)
    assert client.post(f"{url}images/", {"file": file()}).status_code == 404
    assert not Attachment.objects.exists()


def test_an_image_is_shown_to_who_may_see_the_chat(
    client, owner, viewer, stranger, session, project, url
):
    client.force_login(owner)
    uploaded = upload(client, url)
    ask(session, "Look", owner, attachments=[uploaded["id"]])

    def get(user, path: str = uploaded["url"]):
        client.force_login(user)
        return client.get(path)

    answer = get(viewer)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png")
    assert answer["Content-Disposition"].startswith("inline")
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert get(stranger).status_code == 404
    other = Session.objects.create(project=project, creator=owner)
    assert get(owner, uploaded["url"].replace(str(session.pk), str(other.pk))).status_code == 404
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert get(viewer).status_code == 404
    client.logout()
    assert client.get(uploaded["url"]).status_code == 302


def test_an_image_arrives_in_pieces_with_no_connection_held(client, owner, session, url):
    client.force_login(owner)
    uploaded = upload(client, url)
    connection.close()

    async def look() -> tuple[bytes, int]:
        reader = AsyncClient()
        await reader.aforce_login(owner)
        response = await reader.get(uploaded["url"])
        pieces = response.streaming_content
        first = await anext(pieces)
        stats = connection.pool.get_stats()
        holder = stats["pool_size"] - stats["pool_available"]
        return first + b"".join([piece async for piece in pieces]), holder

    data, connections_in_use = async_to_sync(look)()
    assert opened(data).size == (40, 30)
    assert connections_in_use == 0


def test_a_deleted_message_shows_no_image(client, owner, session, url):
    client.force_login(owner)
    uploaded = upload(client, url)
    message, _ = ask(session, "Look", owner, attachments=[uploaded["id"]])
    Message.objects.filter(pk=message.pk).update(deleted_at=timezone.now())
    assert uploaded["url"] not in client.get(url).content.decode()
    assert client.get(uploaded["url"]).status_code == 404


def test_the_prompt_page_names_the_images(client, owner, session, url, scripted):
    client.force_login(owner)
    ask(session, "Look", owner, attachments=[upload(client, url)["id"]])
    assert "[image: plan.png]" in client.get(f"{url}prompt/").content.decode()
