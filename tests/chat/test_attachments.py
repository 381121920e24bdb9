"""Images of a conversation: claimed once, shown to the model, and never lost by a change."""

import base64
import io
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import IntegrityError, connection, transaction
from django.http import Http404
from django.utils import timezone

from chat import attachments
from chat.attachments import (
    ImageRejectedError,
    attachment_for_reading,
    claim_uploads,
    copy_attachments,
    delete_unclaimed,
    images,
    store_image,
    upload_image,
)
from chat.conversations import generation, lookups
from chat.conversations.messages import ask, begin_reply, draft, post_message, post_messages
from chat.models import Attachment, Message, Reaction, Role, Session, Visibility
from chat.prompt import builder
from tests.chat.pictures import SVG, picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def upload(session, owner):
    def make(user=owner, chat=session, description: str = "", size=(40, 30)) -> Attachment:
        file = io.BytesIO(picture(size=size))
        return upload_image(chat, user, "plan.png", file, description)

    return make


def bytes_of(attachment: Attachment) -> bytes:
    with attachment.file.open("rb") as file:
        return file.read()


def say(reply: Message) -> None:
    async def consume() -> None:
        async for _ in generation.stream_reply(reply):
            pass

    async_to_sync(consume)()


def pictures_sent(request: dict) -> list[bytes]:
    """The images of a request at the wire, decoded."""
    return [
        base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,"))
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def words_sent(request: dict) -> str:
    return "\n".join(
        message["content"]
        if isinstance(message["content"], str)
        else "\n".join(part.get("text", "") for part in message["content"])
        for message in request["messages"]
    )


def test_an_upload_is_stored_under_its_project_by_its_id(session, upload, settings):
    uploaded = upload(description="The plan")
    assert uploaded.file.name == f"attachments/{session.project_id}/{uploaded.pk}"
    assert default_storage.path(uploaded.file.name).startswith(str(settings.MEDIA_ROOT))
    assert (uploaded.name, uploaded.description, uploaded.message) == ("plan.png", "The plan", None)
    assert (uploaded.media_type, uploaded.width, uploaded.height) == ("image/png", 40, 30)
    assert len(bytes_of(uploaded)) == uploaded.size


def test_a_name_is_a_name_and_no_path(session, owner):
    names = {"../../etc/passwd": "passwd", "a\nb\0c.png": "a b c.png", "x" * 300: "x" * 200}
    for given_name, stored_name in names.items():
        assert upload_image(session, owner, given_name, io.BytesIO(picture())).name == stored_name


def test_a_refused_image_leaves_nothing(session, owner):
    with pytest.raises(ImageRejectedError, match="SVG"):
        upload_image(session, owner, "plan.png", io.BytesIO(SVG))
    assert not Attachment.objects.exists()


def test_a_message_claims_its_images(session, owner, upload):
    first, second = upload(), upload()
    message, _ = ask(session, "", owner, attachments=[first.pk, second.pk])
    assert list(message.attachments.all()) == [first, second]


def test_only_free_uploads_of_the_same_user_and_session_are_claimed(
    session, owner, editor, upload, project
):
    elsewhere = Session.objects.create(project=project, creator=owner)
    second_upload = upload()
    ask(session, "Look", owner, attachments=[second_upload.pk])
    before = Message.objects.count()
    for other in (upload(editor), upload(chat=elsewhere), second_upload):
        with pytest.raises(ImageRejectedError, match="missing or was already sent"):
            ask(session, "Look", owner, attachments=[upload().pk, other.pk])
    with pytest.raises(ImageRejectedError, match="at most 10"):
        ask(session, "Look", owner, attachments=[upload().pk for _ in range(11)])
    assert Message.objects.count() == before
    assert Attachment.objects.exclude(message=None).count() == 1


def test_two_posts_at_once_claim_an_image_once(session, owner, upload):
    image = upload()
    won, lost = [], []

    def post() -> None:
        try:
            won.append(ask(Session.objects.get(), "Look", owner, attachments=[image.pk]))
        except ImageRejectedError:
            lost.append(True)
        finally:
            connection.close()

    writers = [threading.Thread(target=post) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (len(won), len(lost)) == (1, 3)
    assert session.messages.count() == 2


def test_an_image_reaches_the_model_and_stays_through_every_change(
    session, owner, upload, scripted, settings
):
    image = upload(description="The old primary")
    data = bytes_of(image)
    message, reply = ask(session, "What is this?", owner, attachments=[image.pk])
    say(reply)
    assert pictures_sent(scripted.requests[-1]) == [data]
    assert "What is this?" in words_sent(scripted.requests[-1])

    Message.objects.filter(pk=message.pk).update(text="What is that?", version=2)
    Reaction.objects.create(project=session.project, message=message, user=owner, emoji="👍")
    message.refresh_from_db()
    say(begin_reply(message))
    assert pictures_sent(scripted.requests[-1]) == [data]
    assert "What is that?" in words_sent(scripted.requests[-1])

    # From the history, in another process, after whatever this one keeps in memory.
    _, reply = ask(Session.objects.get(), "And now?", owner)
    talk = """
import sys
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
settings.CHAT_MODEL = "openai-chat:scripted"
import django
django.setup()
from asgiref.sync import async_to_sync
from chat.conversations import generation
from chat.models import Message
async def generate():
    async for _ in generation.stream_reply(reply):
        pass
reply = Message.objects.get(pk=sys.argv[2])
async_to_sync(generate)()
"""
    name = connection.settings_dict["NAME"]
    arguments = [sys.executable, "-c", talk, name, str(reply.pk)]
    subprocess.run(arguments, check=True, timeout=60)
    reply.refresh_from_db()
    assert (reply.status, reply.error) == ("complete", "")
    assert pictures_sent(scripted.requests[-1]) == [data]


def test_a_message_of_nothing_but_an_image_stands_in_the_history(session, owner, upload, scripted):
    _, reply = ask(session, "", owner, attachments=[upload().pk])
    say(reply)
    _, reply = ask(session, "What was it?", owner)
    say(reply)
    assert len(pictures_sent(scripted.requests[-1])) == 1
    reply.refresh_from_db()
    items = [item for section in reply.receipt["sections"] for item in section["items"]]
    assert [item["kind"] for item in items] == ["message", "image", "message", "message"]
    assert next(item for item in items if item["kind"] == "image")["tokens"] == 255


def test_a_model_without_vision_gets_the_description(session, owner, upload, scripted, monkeypatch):
    monkeypatch.setattr("chat.providers.supports_images", lambda name: False)
    described, named = upload(description="The old primary"), upload()
    _, reply = ask(session, "Look", owner, attachments=[described.pk, named.pk])
    say(reply)
    assert pictures_sent(scripted.requests[-1]) == []
    assert words_sent(scripted.requests[-1]).endswith(
        "Look\n[image: The old primary]\n[image: plan.png]"
    )
    reply.refresh_from_db()
    assert reply.error == generation.IMAGES_NOT_SEEN


def test_the_demo_model_gets_descriptions_and_counts_no_image(session, owner, upload, project):
    project.chat_model = "demo"
    project.save()
    message, _ = ask(session, "Look", owner, attachments=[upload(size=(2000, 2000)).pk])
    session.refresh_from_db()
    built = builder.build(builder.Turn(session, message))
    assert built.messages[-1].images == ()
    assert built.messages[-1].text == "Look\n[image: plan.png]"
    assert built.sections[-1].tokens < 30


@pytest.mark.parametrize("refusal", [(400, ""), (500, "image input is not supported")])
def test_a_model_that_refuses_images_is_asked_again_without(
    session, owner, upload, scripted, refusal
):
    from tests.scripted import Answer

    scripted.queue(Answer(refusal[1], status=refusal[0]), "I cannot see it.")
    _, reply = ask(session, "Look", owner, attachments=[upload().pk])
    say(reply)
    reply.refresh_from_db()
    assert (reply.status, reply.text) == ("complete", "I cannot see it.")
    assert [len(pictures_sent(request)) for request in scripted.requests] == [1, 0]
    assert "[image: plan.png]" in words_sent(scripted.requests[-1])


def test_the_reader_sees_which_images_the_model_did_not_get(
    client, api, session, owner, upload, scripted
):
    def reply_error(images: list[Attachment], refusal: bool = True) -> str:
        scripted.reset()
        if refusal:
            scripted.status(400)
        scripted.say("A plan.", finish="length" if len(images) == 2 else "stop")
        _, reply = ask(session, "Look", owner, attachments=[image.pk for image in images])
        say(reply)
        payload = api(owner).get(f"/api/v1/messages/{reply.pk}/").json()
        assert (payload["status"], payload["content"]) == ("complete", "A plan.")
        return payload["error"]

    assert reply_error([], refusal=False) == ""
    assert reply_error([upload()], refusal=False) == ""
    session.messages.update(deleted_at=timezone.now())
    text = "This model cannot see images. It received their descriptions instead."
    assert reply_error([upload()]) == text
    client.force_login(owner)
    page = f"/projects/billing/chats/{session.pk}/"
    assert text in client.get(page).content.decode()
    both = reply_error([upload(), upload()])
    assert both == f"{text}\n{lookups.TRUNCATED}"
    assert both in client.get(page).content.decode()


def test_other_failures_are_not_tried_again(session, owner, upload, scripted):
    scripted.status(401)
    _, reply = ask(session, "Look", owner, attachments=[upload().pk])
    say(reply)
    reply.refresh_from_db()
    assert reply.status == "failed"
    assert len(scripted.requests) == 1


def test_a_whole_answer_is_given_to_images_too(session, owner, upload, scripted):
    from chat import providers

    message, _ = ask(session, "Look", owner, attachments=[upload().pk])
    prompt_messages = builder.build(builder.Turn(session, message)).messages
    scripted.status(400)
    scripted.say("A plan.")
    answer = providers.get_provider("openai-chat:scripted", "reply").complete(prompt_messages, 50)
    assert (answer.text, answer.finished.unseen) == ("A plan.", 1)
    assert [len(pictures_sent(request)) for request in scripted.requests] == [1, 0]


def test_a_missing_image_is_sent_as_its_description(session, owner, upload, scripted):
    image = upload()
    default_storage.delete(image.file.name)
    _, reply = ask(session, "Look", owner, attachments=[image.pk])
    say(reply)
    assert "[image: plan.png]" in words_sent(scripted.requests[-1])


def test_images_leave_room_for_words(session, owner, upload, settings, scripted):
    settings.CONTEXT_TOKENS = 8_000
    for number in range(4):
        large = [upload(size=(2000, 2000)).pk for _ in range(2)]
        ask(session, f"Number {number}", owner, attachments=large)
    message = session.messages.filter(role=Role.USER).last()
    built = builder.build(builder.Turn(session, message))
    assert built.tokens <= built.budget
    image_counts = [
        len(prompt_message.images)
        for prompt_message in built.messages
        if prompt_message.role == "user"
    ]
    assert image_counts[-1] == 1
    text = "\n".join(prompt_message.text for prompt_message in built.messages)
    assert all(f"Number {number}" in text for number in range(4))
    assert text.count("[image") == 8 - sum(image_counts)


def test_a_prompt_takes_one_query_for_all_images(
    session, owner, upload, django_assert_max_num_queries
):
    for _ in range(5):
        message, _ = ask(session, "Look", owner, attachments=[upload().pk])
    turn = builder.Turn(Session.objects.select_related("project").get(), message)
    path = turn.path
    with django_assert_max_num_queries(1):
        assert len(turn.images) == len([item for item in path if item.role == Role.USER])


def test_the_images_of_a_session_go_with_it(session, owner, upload):
    image = upload()
    ask(session, "Look", owner, attachments=[image.pk])
    waiting = upload()
    with transaction.atomic():
        session.delete()
        # A deletion that is taken back must not have lost a file.
        assert default_storage.exists(image.file.name)
    assert not default_storage.exists(image.file.name)
    assert not default_storage.exists(waiting.file.name)


def test_a_deletion_that_is_taken_back_loses_no_file(session, upload):
    image = upload()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        session.delete()
        raise ZeroDivisionError
    assert bytes_of(image)


def test_a_copy_shows_the_same_images_until_the_last_is_gone(session, owner, upload, project):
    original, _ = ask(session, "Look", owner, attachments=[upload(description="It").pk])
    fork = Session.objects.create(project=project, creator=owner)
    with transaction.atomic():
        [copy] = post_messages(fork, [draft("Look", author=owner)])
        copy_attachments([(original.pk, copy)])
    [image], [copied_image] = original.attachments.all(), copy.attachments.all()
    assert (copied_image.session, copied_image.description, copied_image.file.name) == (
        fork,
        "It",
        image.file.name,
    )
    assert copied_image.pk != image.pk
    session.delete()
    assert bytes_of(copied_image)
    fork.delete()
    assert not default_storage.exists(copied_image.file.name)


def test_the_sweep_removes_what_was_never_sent(session, owner, upload):
    old, new, sent = upload(), upload(), upload()
    ask(session, "Look", owner, attachments=[sent.pk])
    yesterday = timezone.now() - timedelta(hours=25)
    Attachment.objects.exclude(pk=new.pk).update(created_at=yesterday)
    assert delete_unclaimed() == 1
    assert set(Attachment.objects.all()) == {new, sent}
    assert not default_storage.exists(old.file.name)
    assert delete_unclaimed() == 0


def test_the_sweep_passes_over_what_is_being_sent(session, owner, upload):
    image = upload()
    Attachment.objects.update(created_at=timezone.now() - timedelta(hours=25))
    swept = []

    def other() -> None:
        swept.append(delete_unclaimed())
        connection.close()

    with transaction.atomic():
        message = post_message(session, "Look", author=owner)
        claim_uploads(message, [image.pk], owner)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert swept == [0]
    assert list(message.attachments.all()) == [image]


def test_an_unsent_image_is_visible_to_its_sender_only(
    session, owner, editor, viewer, stranger, upload
):
    image = upload()
    assert attachment_for_reading(owner, image.pk) == image
    for other in (editor, viewer, stranger):
        with pytest.raises(Http404):
            attachment_for_reading(other, image.pk)
    message, _ = ask(session, "Look", owner, attachments=[image.pk])
    assert attachment_for_reading(viewer, image.pk) == image
    with pytest.raises(Http404):
        attachment_for_reading(stranger, image.pk)
    Session.objects.update(visibility=Visibility.PRIVATE)
    with pytest.raises(Http404):
        attachment_for_reading(editor, image.pk)
    Message.objects.filter(pk=message.pk).update(deleted_at=timezone.now())
    with pytest.raises(Http404):
        attachment_for_reading(owner, image.pk)


def test_no_connection_is_asked_for_the_bytes(session, upload, owner):
    image = upload()
    message, _ = ask(session, "Look", owner, attachments=[image.pk])
    [prompt_image] = attachments.prompt_images_by_message([message])[message.pk]
    connection.close()
    assert attachments.read_images([prompt_image]) == {image.pk: bytes_of(image)}
    assert connection.connection is None


def test_an_image_encoded_here_is_stored_unchanged(session, owner):
    encoded = images.reencode(picture("JPEG"))
    attachment = store_image(session, owner, "", encoded)
    assert (bytes_of(attachment), attachment.sha256, str(attachment)) == (
        encoded.data,
        encoded.sha256,
        str(attachment.pk),
    )


def test_an_upload_to_a_chat_that_was_deleted_meanwhile_leaves_no_file(session, upload):
    Session.objects.all().delete()
    with pytest.raises(IntegrityError):
        upload()
    folder = Path(settings.MEDIA_ROOT) / "attachments" / str(session.project_id)
    assert not [path for path in folder.rglob("*") if path.is_file()]
