"""Open WebUI's export of chats: a list of {chat: {history: {messages, currentId}, title}}."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from chat.importers.base import ImportedSession, ImportResult, Unusable
from chat.importers.elements import Fields, conversations, list_in, object_in, text_in
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_CHAT = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat"\s*:\s*\{', re.DOTALL)
# What the page folds away in an answer: thoughts, calls of tools, code that ran.
_FOLDED = re.compile(
    r'<details type="(?:reasoning|tool_calls|code_interpreter)".*?(?:</details>|\Z)', re.DOTALL
)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CHAT.match(head)) and (b'"history"' in head or b'"messages"' in head)


def sessions(name: str, file: BinaryIO, result: ImportResult) -> Iterator[ImportedSession]:
    """The chats in the order of the file. In an export of everybody's, only those of its first
    user are taken to be the importer's own words.
    """
    users: list[str] = []

    def read(fields: Fields, damaged: list[str]) -> ImportedSession:
        user = text_in(fields, "user_id")
        users.append(user)
        return _session(fields, damaged, "" if user == users[0] else f"User {user[:8]}")

    return conversations(file, result, read)


def _session(fields: Fields, damaged: list[str], speaker: str) -> ImportedSession:
    chat = object_in(fields, "chat") or fields
    history = object_in(chat, "history")
    key = text_in(fields, "id") or text_in(chat, "id")
    if not key or not ("history" in chat or "messages" in chat):
        raise Unusable("It is no chat.")
    said = object_in(history, "messages") or _in_a_row(list_in(chat, "messages"))
    nodes = {}
    for name, message in said.items():
        try:
            nodes[name] = _node(message, speaker)
        except Unusable as reason:
            damaged.append(f"Message {name}: {reason}")
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


def _node(message: object, speaker: str) -> Node:
    """A node, without text for what is no person's and no model's. Raises Unusable."""
    if not isinstance(message, dict):
        raise Unusable("It is no message.")
    role = ROLES.get(text_in(message, "role"))
    if role is None:
        return Node(parent=text_in(message, "parentId"))
    asked = role == Role.USER
    return Node(
        parent=text_in(message, "parentId"),
        role=role,
        text=_text(message),
        at=moment(message.get("timestamp")),
        own=asked and not speaker,
        speaker=speaker if asked else "",
        model="" if asked else text_in(message, "model"),
    )


def _text(message: Fields) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict))
        content = "\n\n".join(filter(None, (text_in(part, "text") for part in parts)))
    if not isinstance(content, str):
        raise Unusable("It has no content.")
    files = (file for file in list_in(message, "files") if isinstance(file, dict))
    notes = [_note(file) for file in files]
    return "\n\n".join(filter(None, [_FOLDED.sub("", content).strip(), *notes]))


def _note(file: Fields) -> str:
    kind = "image" if file.get("type") == "image" else "file"
    name = text_in(file, "name")
    return f"[{kind}: {name}]" if name else f"[{kind}]"
