"""Images that come with conversations from elsewhere."""

import io
import json
from base64 import b64encode
from copy import deepcopy

import pytest
from PIL import Image

from chat import attachments
from chat.attachments import images
from chat.importers import FileResult, chatgpt, import_file
from chat.models import Attachment, Message, Session
from memory.forgetting.service import ForgetScope, forget
from projects.models import Project
from tests.chat.exports import BRANCHES, OPENWEBUI, chatgpt_message, document, file_of, node, zip_of
from tests.chat.pictures import HTML, opened, picture, png_bomb

pytestmark = pytest.mark.django_db

TALK = file_of(BRANCHES).read()
NOTED = "[image: map.png]\n\nDraw its lighthouse on this.\n\n[file: notes.pdf]"
SHOWN = "Draw its lighthouse on this.\n\n[file: notes.pdf]"


def brought(project: Project, owner, files: dict[str, bytes]) -> FileResult:
    whole = zip_of({"conversations.json": TALK} | files)
    return import_file(project, owner, "export.zip", whole)


def question() -> Message:
    return Message.objects.get(source_key="u2")


@pytest.mark.parametrize(
    "name", ["file-Map1-map.png", "file-Map1.dat", "user-x/file-Map1-0190.png", "file-Map1.jpeg"]
)
def test_an_image_that_lies_in_the_zip_is_shown(project, owner, name):
    result = brought(project, owner, {name: picture("PNG", size=(40, 30))})
    assert result.errors == []
    message = question()
    [image] = message.attachments.all()
    assert (message.text, image.name) == (SHOWN, "map.png")
    assert (image.width, image.height, image.uploaded_by) == (40, 30, owner)
    with image.file.open("rb") as file:
        assert opened(file.read()).size == (40, 30)


def test_a_generated_image_keeps_its_prompt(project, owner):
    whole = deepcopy(BRANCHES)
    [part] = whole["mapping"]["d1"]["message"]["content"]["parts"]
    part["asset_pointer"] = "sediment://file_00aa"
    files = {
        "conversations.json": file_of(whole).read(),
        "dalle-generations/file_00aa-1.webp": picture("WEBP"),
    }
    brought(project, owner, files)
    drawn = Message.objects.get(source_key="d1")
    [image] = drawn.attachments.all()
    assert (drawn.text, image.description) == ("", "A tower")
    assert image.name == "file_00aa-1.webp"


@pytest.mark.parametrize("data", [HTML, b"", b"\0" * 100])
def test_a_file_that_is_no_image_stays_a_note(project, owner, data):
    result = brought(project, owner, {"file-Map1-map.png": data})
    assert (question().text, result.errors) == (NOTED, [])
    assert not Attachment.objects.exists()


def with_documents(*names: str) -> dict[str, bytes]:
    whole = deepcopy(BRANCHES)
    metadata = whole["mapping"]["u2"]["message"]["metadata"]
    metadata["attachments"] = [{"id": f"file-D{n}", "name": name} for n, name in enumerate(names)]
    return {"conversations.json": file_of(whole).read()}


@pytest.mark.parametrize("stored", ["file-D0-Pasted text.txt", "file-D0.dat"])
def test_the_text_of_a_document_in_the_zip_is_kept(project, owner, stored):
    text = "\ufeffFrom the log:\n```\n".encode()
    brought(project, owner, with_documents("Pasted text.txt") | {stored: text})
    assert question().text.endswith("[file: Pasted text.txt]\n\n````\nFrom the log:\n```\n\n````")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"", b" ", b"x" * 1_001])
def test_a_document_that_is_no_text_or_too_long_stays_a_note(project, owner, data, monkeypatch):
    monkeypatch.setattr(chatgpt, "MAX_DOCUMENTS_BYTES", 1_000)
    files = with_documents("a.txt", "b.pdf") | {"file-D0-a.txt": data, "file-D1-b.pdf": b"text"}
    result = brought(project, owner, files)
    assert question().text.endswith("[file: a.txt]\n\n[file: b.pdf]")
    assert result.errors == []


def test_documents_of_a_conversation_have_a_limited_size(project, owner, monkeypatch):
    monkeypatch.setattr(chatgpt, "MAX_DOCUMENTS_BYTES", 15)
    documents = {f"file-D{n}-x.txt": b"0123456789" for n in range(3)}
    brought(project, owner, with_documents("a.txt", "b.txt", "c.txt") | documents)
    assert question().text.endswith("```\n0123456789\n```\n\n[file: b.txt]\n\n[file: c.txt]")


def test_a_document_that_is_too_long_leaves_room_for_the_others(project, owner, monkeypatch):
    monkeypatch.setattr(chatgpt, "MAX_DOCUMENTS_BYTES", 15)
    documents = {"file-D0-x.txt": b"0123456789" * 2, "file-D1-x.txt": b"0123456789"}
    brought(project, owner, with_documents("a.txt", "b.txt") | documents)
    assert question().text.endswith("[file: a.txt]\n\n[file: b.txt]\n\n```\n0123456789\n```")


def test_a_document_that_is_too_long_is_read_once(monkeypatch):
    monkeypatch.setattr(chatgpt, "MAX_DOCUMENTS_BYTES", 15)
    result = FileResult()
    files = chatgpt.ConversationFiles({"D0": document(io.BytesIO(b"0" * 20))}, result)
    assert [files.document("D0", "a.txt") for _ in range(3)] == ["[file: a.txt]"] * 3
    assert result.document_bytes == 16


def test_documents_of_all_conversations_have_a_limited_size(project, owner, monkeypatch):
    """A small file of many conversations could name the same document in each."""
    monkeypatch.setattr(chatgpt, "MAX_ALL_DOCUMENTS_BYTES", 25)
    attachments = {"attachments": [{"id": "file-D0", "name": "x.txt"}]}
    message = node(None, chatgpt_message("user", "Read it.", metadata=attachments))
    talks = [{"id": str(n), "mapping": {"u": message}} for n in range(4)]
    files = {"conversations.json": file_of(*talks).read(), "file-D0-x.txt": b"0123456789"}
    brought(project, owner, files)
    texts = Message.objects.order_by("session__source_key").values_list("text", flat=True)
    assert ["0123456789" in text for text in texts] == [True, True, False, False]


def test_an_image_missing_from_the_zip_stays_a_note(project, owner):
    brought(project, owner, {"file-Map2-map.png": picture(), "map.png": picture()})
    assert question().text == NOTED


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (picture("PNG", size=(400, 300))[:-200], "damaged"),
        (png_bomb(), "megapixels"),
        (b"\x89PNG" + b"x" * 100, "damaged"),
        (picture() + b"\0" * images.MAX_IMAGE_BYTES, "limit is 20 MB"),
    ],
)
def test_an_image_that_is_damaged_or_a_bomb_costs_only_itself(project, owner, data, reason):
    files = {"file-Map1-map.png": data}
    result = brought(project, owner, files)
    assert (result.imported, result.refused) == (13, 1)
    assert result.errors[0].startswith("“Lighthouse”: Image “map.png”: ")
    assert reason in result.errors[0]
    assert not Attachment.objects.exists()


def test_an_image_that_is_damaged_in_the_zip_costs_only_itself(project, owner):
    shade = Image.effect_noise((300, 300), 90)
    file = io.BytesIO()
    shade.save(file, "PNG")
    whole = bytearray(
        zip_of({"conversations.json": TALK, "file-Map1-map.png": file.getvalue()}).getvalue()
    )
    whole[whole.index(b"file-Map1-map.png") + 40_000] ^= 255
    result = import_file(project, owner, "export.zip", io.BytesIO(bytes(whole)))
    assert result.imported == 13
    assert result.errors == [
        "“Lighthouse”: Image “map.png”: The zip file is damaged or not complete."
    ]


def test_a_second_import_adds_nothing_and_one_with_the_images_brings_them(project, owner):
    import_file(project, owner, "conversations.json", io.BytesIO(TALK))
    files = {"file-Map1-map.png": picture()}
    result = brought(project, owner, files)
    assert (result.imported, result.skipped) == (0, 13)
    before = list(Attachment.objects.values())
    assert len(before) == 1
    brought(project, owner, files)
    assert list(Attachment.objects.values()) == before


def test_a_deleted_message_gets_no_image(project, owner):
    import_file(project, owner, "conversations.json", io.BytesIO(TALK))
    Message.objects.update(deleted_at=BEGUN)
    brought(project, owner, {"file-Map1-map.png": picture()})
    assert not Attachment.objects.exists()


def test_a_message_that_is_forgotten_meanwhile_gets_no_image(project, owner, monkeypatch):
    import_file(project, owner, "conversations.json", io.BytesIO(TALK))
    store_image = attachments.store_image

    def late(*args):
        forget(project, ForgetScope(message=question().pk))
        return store_image(*args)

    monkeypatch.setattr("chat.importers.images.store_image", late)
    question_id = question().pk
    brought(project, owner, {"file-Map1-map.png": picture()})
    assert Message.objects.get(pk=question_id).forgotten_at
    assert not Attachment.objects.exists()


BEGUN = "2025-03-03T10:40:00Z"


def openwebui(*urls: object) -> io.BytesIO:
    whole = deepcopy(OPENWEBUI)
    files = [{"type": "image", "url": url, "name": "sky.png"} for url in urls]
    whole["chat"]["history"]["messages"]["q"]["files"] = files
    return io.BytesIO(json.dumps([whole]).encode())


def url(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def test_an_image_that_stands_in_the_chat_itself_is_shown(project, owner):
    file = openwebui(url(picture()), url(picture("WEBP"), "webp"))
    result = import_file(project, owner, "chats.json", file)
    [question, *_] = Session.objects.get().messages.order_by("seq")
    assert (question.text, question.attachments.count()) == ("Name a star.", 2)
    assert result.errors == []


@pytest.mark.parametrize(
    "elsewhere",
    ["https://example.org/sky.png", "data:image/png;base64,ä", url(HTML), url(b""), 7, None],
)
def test_an_image_that_stands_elsewhere_is_a_note(project, owner, elsewhere):
    result = import_file(project, owner, "chats.json", openwebui(elsewhere))
    [question, *_] = Session.objects.get().messages.order_by("seq")
    assert (question.text, result.errors) == ("Name a star.\n\n[image: sky.png]", [])
    assert not Attachment.objects.exists()
