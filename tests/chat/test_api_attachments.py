"""/api/v1/…/attachments/: images by API."""

import base64
import hashlib
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from chat.models import Attachment, Message, Session, Visibility
from projects.models import SpendingLimit
from tests.chat.pictures import HTML, SVG, gif_of, opened, picture, png_bomb, saved

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def url(session) -> str:
    return f"/api/v1/sessions/{session.pk}/attachments/"


@pytest.fixture
def messages(session) -> str:
    return f"/api/v1/sessions/{session.pk}/messages/"


def file(data: bytes | None = None, name: str = "plan.png") -> dict:
    return {"file": SimpleUploadedFile(name, data or picture())}


def inline(data: bytes | None = None, **fields) -> dict:
    return {"data": base64.b64encode(data or picture()).decode()} | fields


def content(response) -> bytes:
    return b"".join(response)


def test_an_image_is_uploaded_and_sent(api, owner, url, messages, scripted):
    client = api(owner)
    answer = client.post(url, file() | {"description": "The plan"})
    assert answer.status_code == 201
    payload = answer.json()
    attachment = Attachment.objects.get()
    assert payload == {
        "id": str(attachment.pk),
        "name": "plan.png",
        "media_type": "image/png",
        "width": 40,
        "height": 30,
        "size": attachment.size,
        "description": "The plan",
        "url": f"/api/v1/attachments/{attachment.pk}/",
    }
    answer = client.post(
        messages, {"content": "Look", "attachments": [payload["id"]]}, format="json"
    )
    assert answer.status_code == 201
    assert answer.json()["message"]["attachments"] == [payload]
    assert answer.json()["reply"]["attachments"] == []
    assert client.get(messages).json()["results"][0]["attachments"] == [payload]
    parts = scripted.requests[-1]["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text"]


def test_a_program_sends_images_in_the_request(api, owner, messages, scripted):
    body = {
        "attachments": [
            inline(name="a.png", description="First"),
            inline(picture("JPEG", size=(3000, 10))),
        ]
    }
    answer = api(owner).post(messages, body, format="json")
    assert answer.status_code == 201
    first, second = answer.json()["message"]["attachments"]
    assert (first["name"], first["description"]) == ("a.png", "First")
    assert (second["media_type"], second["width"], second["name"]) == ("image/jpeg", 2048, "")
    assert answer.json()["message"]["content"] == ""
    assert len(scripted.requests[-1]["messages"][-1]["content"]) == 2


def test_a_large_photo_fits_into_a_request(api, owner, messages, scripted):
    photo = saved(Image.effect_noise((2200, 2200), 90), "PNG")
    assert len(photo) > 3_000_000
    body = {"content": "Look", "attachments": [inline(photo)]}
    answer = api(owner).post(messages, body, format="json")
    assert answer.status_code == 201
    [image] = answer.json()["message"]["attachments"]
    assert (image["media_type"], image["width"]) == ("image/jpeg", 2048)


def test_the_words_beside_an_image_may_be_taken_away(api, owner, session, messages, scripted):
    client = api(owner)
    body = {"content": "Look", "attachments": [inline()]}
    exchange = client.post(messages, body, format="json").json()
    message, reply = (f"/api/v1/messages/{exchange[name]['id']}/" for name in ("message", "reply"))
    answer = client.patch(message, {"content": ""}, format="json")
    assert answer.status_code == 200
    assert (answer.json()["content"], len(answer.json()["attachments"])) == ("", 1)
    assert client.patch(message, {"content": "Look!"}, format="json").status_code == 200
    assert client.patch(message, {"content": " \n"}, format="json").status_code == 200
    refused = client.patch(reply, {"content": ""}, format="json")
    assert (refused.status_code, list(refused.json())) == (400, ["content"])
    response = client.post(f"{message}rerun/", {"content": ""}, format="json")
    assert response.status_code == 201
    assert len(response.json()["message"]["attachments"]) == 1


def test_the_images_of_a_deleted_message_are_not_sent_again(
    client, api, owner, editor, messages, scripted
):
    body = {"content": "Look", "attachments": [inline()]}
    pk = api(owner).post(messages, body, format="json").json()["message"]["id"]
    assert api(owner).delete(f"/api/v1/messages/{pk}/").status_code in (200, 204)
    count = Message.objects.count()
    again = f"/api/v1/messages/{pk}/rerun/"
    for user in (editor, owner):
        answer = api(user).post(again, {"content": "Look!"}, format="json")
        assert (answer.status_code, answer.json()) == (
            409,
            {"detail": "This message was deleted."},
        )
    client.force_login(editor)
    page = client.post(f"/messages/{pk}/rerun/", {"content": "Look!"}, follow=True)
    assert "This message was deleted." in page.content.decode()
    assert (Message.objects.count(), Attachment.objects.count()) == (count, 1)


def test_recorded_messages_may_have_images_too(api, owner, messages):
    body = {"content": "Look", "reply": False, "author": "Caroline", "attachments": [inline()]}
    answer = api(owner).post(messages, body, format="json")
    assert answer.status_code == 201
    assert len(answer.json()["message"]["attachments"]) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SVG, "SVG"),
        (HTML, "web page"),
        (gif_of(10_000), "1,000 frames"),
        (png_bomb(8_000, 7_000), "52 megapixels"),
        (picture("JPEG", size=(800, 800))[:-300], "damaged"),
    ],
    ids=["svg", "html", "gif", "png", "jpeg"],
)
def test_an_unsafe_image_is_refused_with_a_reason(
    api, owner, url, messages, scripted, data, reason
):
    answer = api(owner).post(url, file(data))
    assert answer.status_code == 400
    assert reason in answer.json()["file"][0]
    body = {"content": "Look", "attachments": [inline(), inline(data)]}
    answer = api(owner).post(messages, body, format="json")
    assert answer.status_code == 400
    assert answer.json()["attachments"][0].startswith("Image 2: ")
    assert reason in answer.json()["attachments"][0]
    assert not Attachment.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"attachments": []}, "content"),
        ({"content": " ", "attachments": []}, "content"),
        ({"content": "Hi", "attachments": "x"}, "attachments"),
        ({"content": "Hi", "attachments": ["x"]}, "attachments"),
        ({"content": "Hi", "attachments": [7.5]}, "attachments"),
        ({"content": "Hi", "attachments": [None]}, "attachments"),
        ({"content": "Hi", "attachments": [{}]}, "attachments"),
        ({"content": "Hi", "attachments": [{"data": "%%%"}]}, "attachments"),
        ({"content": "Hi", "attachments": [{"data": "é"}]}, "attachments"),
        ({"content": "Hi", "attachments": [str(uuid4())]}, "attachments"),
        ({"content": "Hi", "attachments": [str(uuid4())] * 11}, "attachments"),
    ],
)
def test_invalid_attachments_are_refused_by_field(api, owner, messages, body, field):
    answer = api(owner).post(messages, body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == [field]
    assert all(isinstance(reason, str) for reason in answer.json()[field])
    assert not Message.objects.exists()


def test_an_upload_needs_a_file(api, owner, url):
    assert list(api(owner).post(url, {}).json()) == ["file"]
    assert api(owner).post(url, {"file": "x"}).status_code == 400
    assert api(owner).post(url, {"file": "x"}, format="json").status_code == 415


def test_readers_upload_nothing_and_strangers_see_nothing(api, viewer, stranger, url):
    assert api(viewer).post(url, file()).status_code == 404
    assert api(stranger).post(url, file()).status_code == 404
    assert not Attachment.objects.exists()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_an_image_is_served_as_what_it_is_and_runs_nothing(api, owner, url):
    payload = api(owner).post(url, file()).json()
    answer = api(owner).get(payload["url"], HTTP_ACCEPT="image/webp,image/*")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "image/png"
    assert answer["Content-Disposition"] == f'attachment; filename="{payload["id"]}.png"'
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "private, no-cache"
    assert int(answer["Content-Length"]) == payload["size"]
    data = content(answer)
    assert opened(data).size == (40, 30)
    assert answer["ETag"] == f'"{hashlib.sha256(data).hexdigest()}"'
    response = api(owner).get(payload["url"], HTTP_IF_NONE_MATCH=answer["ETag"])
    assert (response.status_code, response.content) == (304, b"")
    assert response["Cache-Control"] == "private, no-cache"


def test_an_image_is_for_who_may_see_its_session(
    api, owner, editor, viewer, stranger, url, messages, scripted
):
    payload = api(owner).post(url, file()).json()
    assert api(editor).get(payload["url"]).status_code == 404
    body = {"content": "Look", "attachments": [payload["id"]]}
    api(owner).post(messages, body, format="json")
    for user, code in ((owner, 200), (editor, 200), (viewer, 200), (stranger, 404)):
        assert api(user).get(payload["url"]).status_code == code
    Session.objects.update(visibility=Visibility.PRIVATE)
    for user, code in ((owner, 200), (editor, 404), (viewer, 404)):
        assert api(user).get(payload["url"]).status_code == code


def test_a_token_for_another_project_opens_no_image(api, owner, url):
    from projects.services import create_project

    payload = api(owner).post(url, file()).json()
    other = create_project(owner, name="Other", slug="other")
    assert api(owner, project=other).get(payload["url"]).status_code == 404
    assert api(owner, project=other).post(url, file()).status_code == 404


def test_without_a_token_there_is_nothing(client, api, owner, url):
    payload = api(owner).post(url, file()).json()
    client.force_login(owner)
    assert client.get(payload["url"]).status_code == 401
    assert client.post(url, file()).status_code == 401


def test_an_image_that_is_not_there_is_404(api, owner, url):
    payload = api(owner).post(url, file()).json()
    assert api(owner).get(f"/api/v1/attachments/{uuid4()}/").json() == {"detail": "Not found."}
    attachment = Attachment.objects.get()
    attachment.file.storage.delete(attachment.file.name)
    assert api(owner).get(payload["url"]).status_code == 404


def test_a_rejected_message_leaves_no_file(api, owner, project, messages, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    body = {"content": "Hi", "attachments": [inline(), str(uuid4())]}
    answer = api(owner).post(messages, body, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert answer.status_code == 400
    SpendingLimit.objects.create(project=project, tokens_per_day=0)
    body["attachments"].pop()
    answer = api(owner).post(messages, body, format="json", HTTP_IDEMPOTENCY_KEY="k2")
    assert answer.status_code == 429
    assert not Attachment.objects.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
