"""Export and import a session with images, revisions, reactions and usage."""

import io
import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256

import pytest
from django.core.files.storage import default_storage

from chat import attachments, exporters
from chat.attachments.images import EncodedImage
from chat.conversations import edits
from chat.conversations.messages import draft, post_message, post_messages
from chat.importers import FileResult, import_file
from chat.importers import images as imported_images
from chat.models import Attachment, Message, MessageRevision, Reaction, Session
from chat.models.messages import MAX_REACTIONS
from projects.models import Membership, Project
from projects.services import create_project
from tests.chat.pictures import picture
from tests.chat.test_exports import exported, exported_fields

pytestmark = pytest.mark.django_db

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def session(project, owner) -> Session:
    chat_session = Session.objects.create(
        project=project,
        creator=owner,
        title="The cutover",
        title_by_hand=True,
        pinned=True,
        archived_at=NOON,
        history_limit=70,
        created_at=NOON,
    )
    question = post_message(chat_session, "Wehn?", author=owner, created_at=NOON)
    edits.edit(question, "Whne?", owner)
    edits.edit(question, "When?", owner)
    post_message(
        chat_session,
        "At nine.",
        role="assistant",
        created_at=NOON,
        input_tokens=120,
        output_tokens=4,
        cost=Decimal("0.0012"),
        first_token_ms=310,
    )
    edits.react(question, owner, "👍", wanted=True)
    edits.react(question, owner, "🎉", wanted=True)
    chat_session.refresh_from_db()
    return chat_session


@pytest.fixture
def question(session) -> Message:
    return session.messages.get(seq=1)


@pytest.fixture
def other(owner) -> Project:
    return create_project(owner, name="Other", slug="other")


@pytest.fixture
def show(owner) -> Callable[[Message, bytes], Attachment]:
    def show(message: Message, data: bytes, name: str = "map.png") -> Attachment:
        attachment = attachments.upload_image(
            message.session, owner, name, io.BytesIO(data), "A map"
        )
        attachments.claim_uploads(message, [attachment.pk], owner)
        return attachment

    return show


def photo() -> bytes:
    """A JPEG that is another one each time it is made anew."""
    return picture("JPEG", size=(320, 240))


def brought(project: Project, user, written: bytes) -> tuple[Session, FileResult]:
    result = import_file(project, user, "chat.json", io.BytesIO(written))
    return Session.objects.get(project=project), result


def stored(image: Attachment) -> bytes:
    with image.file.open("rb") as file:
        return file.read()


def changed(written: bytes, number: int, **fields) -> bytes:
    """The export with other fields in its message `number`."""
    whole = json.loads(written)
    whole["messages"][number] |= fields
    return json.dumps(whole).encode()


def test_all_of_it_comes_back_as_it_was(session, question, show, owner, other):
    show(question, photo(), "photo.jpg")
    show(question, picture("PNG", mode="RGBA"))
    copy, result = brought(other, owner, exported(session))
    assert exported_fields(copy) == exported_fields(session)
    assert result.errors == []
    exported_copy = exported_fields(copy)["messages"][0]
    assert [revision["content"] for revision in exported_copy["revisions"]] == ["Whne?", "Wehn?"]
    assert [reaction["emoji"] for reaction in exported_copy["reactions"]] == ["👍", "🎉"]
    assert [image["name"] for image in exported_copy["images"]] == ["photo.jpg", "map.png"]
    assert exported_fields(copy)["messages"][1]["cost"] == "0.001200"
    settings = ("title_by_hand", "pinned", "archived_at", "history_limit")
    assert [getattr(copy, name) for name in settings] == [True, True, NOON, 70]


def test_it_adds_nothing_where_it_is_already(session, question, show, owner, other):
    show(question, photo())
    written = exported(session)
    for project in (session.project, other, other):
        import_file(project, owner, "chat.json", io.BytesIO(written))
    counts = [model.objects.count() for model in (Message, MessageRevision, Reaction, Attachment)]
    assert counts == [4, 4, 4, 2]


def test_only_images_encoded_elsewhere_are_encoded_again(session, question, show, owner, other):
    attachment = show(question, photo())
    written = exported(session)
    copy, _ = brought(other, owner, written)
    [image] = Attachment.objects.filter(session=copy)
    assert stored(image) == stored(attachment)
    image.message.session.delete()
    [image_fields] = json.loads(written)["messages"][0]["images"]
    forged = changed(written, 0, images=[image_fields | {"seal": "x" + image_fields["seal"]}])
    copy, _ = brought(other, owner, forged)
    [image] = Attachment.objects.filter(session=copy)
    assert stored(image) != stored(attachment)
    assert (image.media_type, image.width, image.height) == ("image/jpeg", 320, 240)


def test_the_exported_type_and_size_of_an_image_are_not_trusted(
    session, question, show, owner, other
):
    show(question, photo())
    written = exported(session)
    [image_fields] = json.loads(written)["messages"][0]["images"]
    lies = {"media_type": "text/html", "width": 1, "name": "../../x\n.png"}
    copy, result = brought(other, owner, changed(written, 0, images=[image_fields | lies]))
    [image] = Attachment.objects.filter(session=copy)
    assert (image.media_type, image.width, image.name) == ("image/jpeg", 320, "x .png")
    assert result.errors == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"data": "AAAA"}, "This file type is not supported"),
        ({"data": "ä"}, "It is not base64."),
        ({"data": ""}, "It has no data."),
        ({"data": None}, "It has no data."),
        ({"data": "A" * 30_000_000}, "The image is too large. The limit is 20 MB."),
    ],
)
def test_a_damaged_image_costs_only_itself(session, question, show, owner, other, damage, reason):
    show(question, photo())
    written = exported(session)
    [image_fields] = json.loads(written)["messages"][0]["images"]
    images = [image_fields | damage, 7, "older exports have their names alone", image_fields]
    copy, result = brought(other, owner, changed(written, 0, images=images))
    assert Attachment.objects.filter(session=copy, message__text="When?").count() == 1
    assert (result.imported, result.refused) == (2, 1)
    assert "map.png" in result.errors[0]
    assert reason in result.errors[0]


def test_more_images_than_a_message_takes_are_left_out(session, question, show, owner, other):
    show(question, picture())
    written = exported(session)
    [image_fields] = json.loads(written)["messages"][0]["images"]
    copy, result = brought(other, owner, changed(written, 0, images=[image_fields] * 11))
    assert Attachment.objects.filter(session=copy).count() == 10
    assert result.errors == ["“The cutover”: A message can have at most 10 images."]


def test_an_image_without_a_file_is_reported(session, question, show, owner, other):
    default_storage.delete(show(question, picture()).file.name)
    _, result = brought(other, owner, exported(session))
    assert result.errors == ["Conversation 1: Message 1: Image “map.png”: It has no data."]


def test_an_import_that_ended_between_two_images_is_carried_on(
    session, question, show, owner, other, monkeypatch
):
    show(question, photo())
    show(session.messages.get(seq=2), picture())
    written = exported(session)
    steps = iter([None, None, OSError])

    def stop(*_args) -> None:
        if error := next(steps):
            raise error

    with pytest.raises(OSError):
        import_file(other, owner, "chat.json", io.BytesIO(written), progress=stop)
    copy = Session.objects.get(project=other)
    assert [message.attachments.count() for message in copy.messages.order_by("seq")] == [1, 0]
    brought(other, owner, written)
    assert exported_fields(copy) == exported_fields(session)
    assert not Attachment.objects.filter(message=None).exists()


def test_a_message_of_another_member_gets_no_image_from_a_file(session, question, show, editor):
    show(question, photo())
    written = exported(session)
    Attachment.objects.all().delete()
    result = import_file(session.project, editor, "chat.json", io.BytesIO(written))
    assert (result.skipped, question.attachments.count()) == (2, 0)
    assert not Attachment.objects.exists()
    import_file(session.project, question.author, "chat.json", io.BytesIO(written))
    assert question.attachments.count() == 1


def test_two_imports_at_once_show_an_image_once(session, question, show, owner, other, monkeypatch):
    show(question, picture())
    written = exported(session)
    claim = imported_images._claim

    def late(item, expected_count) -> None:
        monkeypatch.setattr(imported_images, "_claim", claim)
        brought(other, owner, written)
        claim(item, expected_count)

    monkeypatch.setattr(imported_images, "_claim", late)
    copy, _ = brought(other, owner, written)
    assert Attachment.objects.filter(session=copy).count() == 1


def test_reactions_and_edits_of_a_former_member_have_no_user(
    session, question, person, owner, other
):
    stan = person("stan")
    Membership.objects.create(project=session.project, user=stan, role="editor")
    edits.edit(question, "When, then?", stan)
    edits.react(question, stan, "🎈", wanted=True)
    copy, result = brought(other, owner, exported(session))
    assert set(Reaction.objects.filter(message__session=copy).values_list("emoji", flat=True)) == {
        "👍",
        "🎉",
    }
    latest = MessageRevision.objects.filter(message__session=copy).first()
    assert (latest.text, latest.edited_by) == ("When?", None)
    assert result.errors == []


def test_a_deleted_message_keeps_only_its_place(session, question, show, owner, other):
    show(question, picture())
    edits.delete(question)
    written = exported(session)
    place = json.loads(written)["messages"][0]
    assert [place[name] for name in ("content", "revisions", "reactions", "images")] == [
        "",
        [],
        [],
        [],
    ]
    forged = changed(
        written,
        0,
        content="Secret",
        revisions=[{"version": 1, "content": "Secret", "edited_at": NOON.isoformat()}],
        reactions=[{"user": "olive", "emoji": "👍"}],
        images=[{"name": "x", "data": "AAAA"}],
    )
    copy, _ = brought(other, owner, forged)
    assert exported_fields(copy) == exported_fields(session)


@pytest.mark.parametrize(
    "random_session",
    [
        {"version": -1},
        {"version": 2**40},
        {"version": True},
        {"revisions": [{"version": 7, "content": "later"}, {"version": 0}, 7, {}]},
        {"revisions": [{"version": 1, "content": "\0a"}, {"version": 1, "content": "b"}]},
        {"revisions": {"version": 1}},
        {"reactions": [{"user": "olive", "emoji": "👍"}] * 2},
        {"reactions": [{"user": "olive", "emoji": "not an emoji"}, {"user": 7}, "👍"]},
        {"reactions": [{"user": "olive", "emoji": "👍" * 40}, {"user": "olive", "emoji": "\0👍"}]},
        {"cost": "NaN"},
        {"cost": "-1"},
        {"cost": "1e30"},
        {"cost": "999999.9999999"},
        {"cost": {}},
        {"input_tokens": -1, "output_tokens": 2**31, "first_token_ms": 1.5},
        {"edited_at": "9999-01-01T00:00:00Z"},
    ],
)
def test_invalid_fields_are_left_out_and_the_message_is_kept(
    session, question, owner, other, random_session
):
    copy, result = brought(other, owner, changed(exported(session), 0, **random_session))
    assert (result.imported, result.refused) == (2, 0)
    message = copy.messages.get(seq=1)
    # It can be worked with as any other.
    edits.edit(message, "Now?", owner)
    assert message.revisions.count() in (1, 2, 3)


def test_a_message_gets_no_more_reactions_than_its_pages_can_show(session, question, owner, other):
    faces = [chr(0x1F600 + number) for number in range(60)]
    reactions = [{"user": "olive", "emoji": emoji} for emoji in faces]
    copy, _ = brought(other, owner, changed(exported(session), 0, reactions=reactions))
    message = copy.messages.get(seq=1)
    assert [it.emoji for it in message.reactions.all()] == faces[:MAX_REACTIONS]


@pytest.mark.parametrize("random_session", [{"history_limit": 7}, {"history_limit": 10**9}])
def test_a_history_limit_stays_in_its_range(session, owner, other, random_session):
    whole = json.loads(exported(session))
    whole["session"] |= random_session
    copy, _ = brought(other, owner, json.dumps(whole).encode())
    assert copy.history_limit in (50, 1_000)


def test_an_older_export_has_none_of_it(session, owner, other):
    whole = json.loads(exported(session))
    for name in ("title_by_hand", "pinned", "archived_at", "history_limit"):
        del whole["session"][name]
    for message in whole["messages"]:
        for name in ("version", "revisions", "reactions", "cost", "input_tokens"):
            del message[name]
        message["images"] = ["A map"]
    copy, result = brought(other, owner, json.dumps(whole).encode())
    assert [item.text for item in copy.messages.order_by("seq")] == ["When?", "At nine."]
    assert (copy.pinned, copy.history_limit, result.errors) == (False, None, [])


def test_an_older_import_gets_its_images_from_a_newer_file(session, question, show, owner, other):
    without = exported(session)
    show(question, picture())
    brought(other, owner, without)
    copy, result = brought(other, owner, exported(session))
    assert (result.imported, result.skipped) == (0, 2)
    assert exported_fields(copy) == exported_fields(session)


def test_several_exports_in_one_file_are_read(session, owner, other):
    second = Session.objects.create(project=session.project, creator=owner, title="Second")
    post_message(second, "Hello", author=owner, created_at=NOON)
    whole = b"[" + exported(session) + b",\n" + exported(second) + b"]"
    result = import_file(other, owner, "chats.json", io.BytesIO(whole))
    assert (result.sessions, result.imported) == (2, 3)


def test_the_order_and_the_spaces_of_a_file_do_not_matter(session, question, show, owner, other):
    show(question, photo())
    whole = json.loads(exported(session))
    turned = {"format": whole.pop("format")} | dict(reversed(whole.items()))
    copy, _ = brought(other, owner, json.dumps(turned, indent=4).encode())
    assert exported_fields(copy) == exported_fields(session)


def test_images_go_out_and_come_in_again_in_bounded_memory(project, owner, other, tmp_path):
    session = Session.objects.create(project=project, creator=owner, title="Many", created_at=NOON)
    data = b"x" * 2**20
    image = EncodedImage(data, "image/png", 9, 9, sha256(data).hexdigest())
    for message in post_messages(session, [draft("Look", created_at=NOON) for _ in range(40)]):
        attachment = attachments.store_image(session, owner, "large.png", image)
        attachments.claim_uploads(message, [attachment.pk], owner)
    path = tmp_path / "many.json"

    def write() -> None:
        with path.open("wb") as file:
            file.writelines(exporters.export(session, "json"))

    def read() -> None:
        with path.open("rb") as file:
            import_file(other, owner, path.name, file)

    peaks = megabytes(write), megabytes(read)
    assert max(peaks) < 12
    assert path.stat().st_size > 50 * 2**20
    assert Attachment.objects.filter(project=other).count() == 40


def megabytes(work: Callable[[], None]) -> float:
    """What `work` takes at its peak."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def test_tool_calls_come_back_with_their_results(session, owner, other):
    calls = [{"id": "call_1", "name": "look", "arguments": '{"at": 9}'}]
    post_message(session, "", role="assistant", created_at=NOON, tool_calls=calls)
    post_message(session, "Nine.", role="tool", created_at=NOON, tool_call_id="call_1")
    copy, result = brought(other, owner, exported(session))
    assert (exported_fields(copy), result.errors) == (exported_fields(session), [])
    tool_fields = list(copy.messages.values_list("tool_calls", "tool_call_id"))
    assert tool_fields[-2:] == [(calls, ""), ([], "call_1")]


@pytest.mark.parametrize(
    "random_session", [None, "x", {"id": 1}, [7], [{"name": "look"}], [{"id": ""}]]
)
def test_calls_that_are_made_up_are_left_out(session, owner, other, random_session):
    copy, _ = brought(other, owner, changed(exported(session), 1, tool_calls=random_session))
    assert copy.messages.get(seq=2).tool_calls == []
