"""Claude's export: conversations.json with `chat_messages`, alone or in the zip file.

The zip file may hold memories.json and projects.json too (or a folder of each): what they say of
the user and of projects is for memory, as proposals.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from chat.importers.base import ImportedSession, ImportResult, Unusable
from chat.importers.elements import Fields, conversations, list_in, split, text_in
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_CONVERSATION = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat_messages"\s*:', re.DOTALL)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CONVERSATION.match(head))


def sessions(name: str, file: BinaryIO, result: ImportResult) -> Iterator[ImportedSession]:
    """The conversations in the order of the file."""
    return conversations(file, result, _session)


def _session(fields: Fields, damaged: list[str]) -> ImportedSession:
    said, key = fields.get("chat_messages"), text_in(fields, "uuid")
    if not isinstance(said, list) or not key:
        raise Unusable("It is no conversation.")
    nodes: dict[str, Node] = {}
    for number, message in enumerate(said, 1):
        try:
            # Older exports name no parents: each message follows the one before.
            name, node = _node(message, before=next(reversed(nodes), None))
        except Unusable as reason:
            damaged.append(f"Message {number}: {reason}")
        else:
            nodes[name] = node
    current = text_in(fields, "current_leaf_message_uuid") or next(reversed(nodes), None)
    messages, head = laid_out(nodes, current, moment(fields.get("created_at")))
    return ImportedSession(key, text_in(fields, "name"), messages, is_tree=True, head=head)


def _node(message: object, before: str | None) -> tuple[str, Node]:
    """The key and the node of a message. Raises Unusable."""
    if not isinstance(message, dict):
        raise Unusable("It is no message.")
    role = ROLES.get(text_in(message, "sender"))
    key = text_in(message, "uuid")
    if role is None or not key:
        raise Unusable("It has no sender or no id.")
    parent = text_in(message, "parent_message_uuid") if "parent_message_uuid" in message else before
    return key, Node(
        parent=parent,
        role=role,
        text=_text(message),
        at=moment(message.get("created_at")),
        own=role == Role.USER,
    )


def _text(message: Fields) -> str:
    """What was said, without thoughts and tools, and notes in place of files."""
    parts = (part for part in list_in(message, "content") if isinstance(part, dict))
    said = [text_in(part, "text") for part in parts if part.get("type") == "text"]
    # `text` repeats the content, with placeholders for what is no text.
    told = said if list_in(message, "content") else [text_in(message, "text")]
    return "\n\n".join(filter(None, [*told, *_files(message)]))


def _files(message: Fields) -> Iterator[str]:
    for file in (*list_in(message, "attachments"), *list_in(message, "files")):
        name = text_in(file, "file_name") if isinstance(file, dict) else ""
        if name:
            yield f"[{'image' if name.lower().endswith(IMAGES) else 'file'}: {name}]"


def memories(name: str, file: BinaryIO) -> list[str]:
    """What a file of memories or of projects in the zip says that is worth keeping."""
    found: list[str] = []
    for element in split(iter(lambda: file.read(2**20), b"")):
        try:
            fields = json.loads(element) if isinstance(element, bytes) else {}
        except (ValueError, RecursionError):
            continue
        found += _remembered(fields) if isinstance(fields, dict) else []
    return found


def _remembered(fields: Fields) -> list[str]:
    texts: list[Any] = [fields.get("conversations_memory")]
    projects = fields.get("project_memories")
    texts += projects.values() if isinstance(projects, dict) else []
    name, description = text_in(fields, "name"), text_in(fields, "description")
    if name and description:
        texts.append(f"The project {name}: {description}")
    if name and text_in(fields, "prompt_template"):
        texts.append(f"Instructions of the project {name}: {fields['prompt_template']}")
    return [text.strip() for text in texts if isinstance(text, str) and text.strip()]
