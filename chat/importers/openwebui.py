"""Open WebUI's export of chats: a list of {chat: {history: {messages, currentId}, title}}."""

import re
from collections.abc import Callable, Iterator

from django.utils.translation import gettext_noop as _

from chat.importers.base import (
    ImportedFile,
    ImportedImage,
    ImportedSession,
    ImportResult,
    InvalidItemError,
    first_plausible,
    parse_time,
    quoted_document,
)
from chat.importers.images import MAX_IMAGES_PER_MESSAGE, ImageSpool
from chat.importers.json_objects import (
    JSONObject,
    get_list,
    get_object,
    get_objects,
    get_text,
    iter_objects,
    parse_each,
    read_conversations,
    require_object,
)
from chat.importers.trees import TreeNode, order_messages
from chat.models import Role

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_CHAT = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat"\s*:\s*\{', re.DOTALL)
# An uploaded image is stored in the chat as a data: URL.
_DATA = re.compile(r"data:image/[a-z+.-]+;base64,")
# The folded parts of an answer: reasoning, tool calls, executed code.
_FOLDED = re.compile(
    r'<details type="(?:reasoning|tool_calls|code_interpreter)".*?(?:</details>|\Z)', re.DOTALL
)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CHAT.match(head)) and (b'"history"' in head or b'"messages"' in head)


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the chats in the order of the file.

    In an export of all users, only the first user's chats are attributed to the importing user.
    """
    users: list[str] = []
    spool = ImageSpool()

    def read(fields: JSONObject, errors: list[str]) -> ImportedSession:
        user = get_text(fields, "user_id")
        users.append(user)
        speaker = "" if user == users[0] else f"User {user[:8]}"
        return _session(fields, errors, lambda message: _node(message, speaker, spool))

    return read_conversations(iter_objects(document.open()), result, read)


def _session(
    fields: JSONObject, errors: list[str], read: Callable[[object], TreeNode]
) -> ImportedSession:
    chat = get_object(fields, "chat") or fields
    history = get_object(chat, "history")
    key = get_text(fields, "id") or get_text(chat, "id")
    if not key or not ("history" in chat or "messages" in chat):
        raise InvalidItemError(_("It is not a chat."))
    items = get_object(history, "messages") or _linear_history(get_list(chat, "messages"))
    # A damaged message becomes an empty node, so that its children are attached to its parent.
    blank = {
        name: TreeNode(parent=get_text(value, "parentId"))
        for name, value in items.items()
        if isinstance(value, dict)
    }
    nodes = dict(parse_each(items.items(), read, errors))
    current = history.get("currentId") or next(reversed(nodes), None)
    start = parse_time(fields.get("created_at")) or parse_time(chat.get("timestamp"))
    messages, head = order_messages({**blank, **nodes}, current, start)
    title = get_text(fields, "title") or get_text(chat, "title")
    updated = parse_time(fields.get("updated_at"))
    archived_at = first_plausible(updated, start) if fields.get("archived") is True else None
    return ImportedSession(key, title, messages, is_tree=True, head=head, archived_at=archived_at)


def _linear_history(messages: list) -> JSONObject:
    """Return the messages of a chat without a history, each as the parent of the next message."""
    history: JSONObject = {}
    for number, message in enumerate(messages, 1):
        if isinstance(message, dict):
            key = get_text(message, "id") or str(number)
            history[key] = {"parentId": next(reversed(history), None)} | message
    return history


def _node(value: object, speaker: str, spool: ImageSpool) -> TreeNode:
    """Return a node, with text only for user and assistant. Raises `InvalidItemError`."""
    message = require_object(value)
    role = ROLES.get(get_text(message, "role"))
    if role is None:
        return TreeNode(parent=get_text(message, "parentId"))
    is_user = role == Role.USER
    text, images = _content(message, spool)
    return TreeNode(
        parent=get_text(message, "parentId"),
        role=role,
        text=text,
        at=parse_time(message.get("timestamp")),
        own=is_user and not speaker,
        speaker=speaker if is_user else "",
        model="" if is_user else get_text(message, "model"),
        images=images,
    )


def _content(message: JSONObject, spool: ImageSpool) -> tuple[str, tuple[ImportedImage, ...]]:
    """Return the text and the images. A note in the text replaces each other file.

    Raises `InvalidItemError`.
    """
    content = message.get("content")
    if isinstance(content, list):
        parts = get_objects(message, "content")
        content = "\n\n".join(filter(None, (get_text(part, "text") for part in parts)))
    # Newer versions show these items in place of the content.
    if shown := [it for it in get_objects(message, "output") if it.get("type") == "message"]:
        parts = [part for item in shown for part in get_objects(item, "content")]
        content = "\n".join(get_text(part, "text") for part in parts).strip() or content
    if not isinstance(content, str):
        raise InvalidItemError(_("It has no content."))
    texts = [_FOLDED.sub("", content).strip()]
    images: list[ImportedImage] = []
    for file in get_objects(message, "files"):
        image = _image(file, spool) if len(images) < MAX_IMAGES_PER_MESSAGE else None
        if image:
            images.append(image)
        else:
            texts.append(_note(file))
    return "\n\n".join(filter(None, texts)), tuple(images)


def _image(file: JSONObject, spool: ImageSpool) -> ImportedImage | None:
    """Return an uploaded file as an image, or None if it is not an image."""
    prefix = _DATA.match(get_text(file, "url"))
    if prefix is None:
        return None
    return spool.image(file["url"][prefix.end() :], get_text(file, "name"))


def _note(file: JSONObject) -> str:
    """Return the text of a document, or a note if the export does not contain it."""
    if text := get_text(get_object(get_object(file, "file"), "data"), "content").strip():
        return quoted_document(get_text(file, "name"), text)
    kind = "image" if file.get("type") == "image" else "file"
    name = get_text(file, "name")
    return f"[{kind}: {name}]" if name else f"[{kind}]"
