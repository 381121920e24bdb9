"""Open WebUI's export of chats: a list of {chat: {history: {messages, currentId}, title}}."""

import re
from collections.abc import Callable, Iterator

from chat.importers.base import Document, ImportedImage, ImportedSession, ImportResult, Unusable
from chat.importers.elements import conversations, objects_of
from chat.importers.fields import (
    Fields,
    an_object,
    list_in,
    object_in,
    objects_in,
    readable,
    text_in,
)
from chat.importers.images import MOST_A_MESSAGE, Spool
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_CHAT = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat"\s*:\s*\{', re.DOTALL)
# An image that was uploaded stands in the chat itself.
_DATA = re.compile(r"data:image/[a-z+.-]+;base64,")
# What the page folds away in an answer: thoughts, calls of tools, code that ran.
_FOLDED = re.compile(
    r'<details type="(?:reasoning|tool_calls|code_interpreter)".*?(?:</details>|\Z)', re.DOTALL
)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CHAT.match(head)) and (b'"history"' in head or b'"messages"' in head)


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The chats in the order of the file. In an export of everybody's, only those of its first
    user are taken to be the importer's own words.
    """
    users: list[str] = []
    spool = Spool()

    def read(fields: Fields, damaged: list[str]) -> ImportedSession:
        user = text_in(fields, "user_id")
        users.append(user)
        speaker = "" if user == users[0] else f"User {user[:8]}"
        return _session(fields, damaged, lambda message: _node(message, speaker, spool))

    return conversations(objects_of(document.open()), result, read)


def _session(fields: Fields, damaged: list[str], read: Callable[[object], Node]) -> ImportedSession:
    chat = object_in(fields, "chat") or fields
    history = object_in(chat, "history")
    key = text_in(fields, "id") or text_in(chat, "id")
    if not key or not ("history" in chat or "messages" in chat):
        raise Unusable("It is no chat.")
    said = object_in(history, "messages") or _in_a_row(list_in(chat, "messages"))
    nodes = dict(readable(said.items(), read, damaged))
    current = history.get("currentId") or next(reversed(nodes), None)
    begun = moment(fields.get("created_at")) or moment(chat.get("timestamp"))
    messages, head = laid_out(nodes, current, begun)
    title = text_in(fields, "title") or text_in(chat, "title")
    return ImportedSession(key, title, messages, is_tree=True, head=head)


def _in_a_row(messages: list) -> Fields:
    """The messages of a chat without a history, each the parent of the next."""
    row: Fields = {}
    for number, message in enumerate(messages, 1):
        if isinstance(message, dict):
            key = text_in(message, "id") or str(number)
            row[key] = {"parentId": next(reversed(row), None)} | message
    return row


def _node(value: object, speaker: str, spool: Spool) -> Node:
    """A node, without text for what is no person's and no model's. Raises Unusable."""
    message = an_object(value)
    role = ROLES.get(text_in(message, "role"))
    if role is None:
        return Node(parent=text_in(message, "parentId"))
    asked = role == Role.USER
    text, images = _shown(message, spool)
    return Node(
        parent=text_in(message, "parentId"),
        role=role,
        text=text,
        at=moment(message.get("timestamp")),
        own=asked and not speaker,
        speaker=speaker if asked else "",
        model="" if asked else text_in(message, "model"),
        images=images,
    )


def _shown(message: Fields, spool: Spool) -> tuple[str, tuple[ImportedImage, ...]]:
    """The text, with notes in place of files, and the images. Raises Unusable."""
    content = message.get("content")
    if isinstance(content, list):
        parts = objects_in(message, "content")
        content = "\n\n".join(filter(None, (text_in(part, "text") for part in parts)))
    if not isinstance(content, str):
        raise Unusable("It has no content.")
    told = [_FOLDED.sub("", content).strip()]
    images: list[ImportedImage] = []
    for file in objects_in(message, "files"):
        image = _image(file, spool) if len(images) < MOST_A_MESSAGE else None
        if image:
            images.append(image)
        else:
            told.append(_note(file))
    return "\n\n".join(filter(None, told)), tuple(images)


def _image(file: Fields, spool: Spool) -> ImportedImage | None:
    """The image that an uploaded file is, if it is one."""
    written = _DATA.match(text_in(file, "url"))
    if written is None:
        return None
    return spool.image(file["url"][written.end() :], text_in(file, "name"))


def _note(file: Fields) -> str:
    kind = "image" if file.get("type") == "image" else "file"
    name = text_in(file, "name")
    return f"[{kind}: {name}]" if name else f"[{kind}]"
