"""Claude's export: conversations.json with `chat_messages`, alone or in the zip file.

The zip file may hold memories.json and projects.json too (or a folder of each): what they say of
the user and of projects is for memory, as proposals.
"""

import re
from collections.abc import Iterator, Sequence

from chat.importers.base import Document, ImportedSession, ImportResult, Refused, Unusable
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
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

NAME = "Claude"
ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_CONVERSATION = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat_messages"\s*:', re.DOTALL)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CONVERSATION.match(head))


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The conversations in the order of the file."""
    return conversations(objects_of(document.open()), result, _session)


def _session(fields: Fields, damaged: list[str]) -> ImportedSession:
    said, key = fields.get("chat_messages"), text_in(fields, "uuid")
    if not isinstance(said, list) or not key:
        raise Unusable("It is no conversation.")
    nodes: dict[str, Node] = {}

    def read(message: object) -> tuple[str, Node]:
        # Older exports name no parents: each message follows the one before.
        return _node(message, before=next(reversed(nodes), None))

    for _, (name, node) in readable(enumerate(said, 1), read, damaged):
        nodes[name] = node
    current = text_in(fields, "current_leaf_message_uuid") or next(reversed(nodes), None)
    messages, head = laid_out(nodes, current, moment(fields.get("created_at")))
    return ImportedSession(key, text_in(fields, "name"), messages, is_tree=True, head=head)


def _node(value: object, before: str | None) -> tuple[str, Node]:
    """The key and the node of a message. Raises Unusable."""
    message = an_object(value)
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
    parts = objects_in(message, "content")
    said = [text_in(part, "text") for part in parts if part.get("type") == "text"]
    # `text` repeats the content, with placeholders for what is no text.
    told = said if list_in(message, "content") else [text_in(message, "text")]
    return "\n\n".join(filter(None, [*told, *_files(message)]))


def _files(message: Fields) -> Iterator[str]:
    for file in (*objects_in(message, "attachments"), *objects_in(message, "files")):
        if name := text_in(file, "file_name"):
            yield f"[{'image' if name.lower().endswith(IMAGES) else 'file'}: {name}]"


def memories(documents: Sequence[Document], result: ImportResult) -> list[str]:
    """What files of memories and of projects in the zip say that is worth keeping.

    Memories are one object {conversations_memory, project_memories: {project: text}}; projects
    have a name, and perhaps a description and a prompt_template.
    """
    names = {
        text_in(fields, "uuid"): text_in(fields, "name")
        for fields in _objects(documents, ImportResult())
    }
    found: list[str] = []
    for fields in _objects(documents, result):
        found += [*_memories(fields, names), *_project(fields)]
    return list(filter(None, map(str.strip, found)))


def _objects(documents: Sequence[Document], result: ImportResult) -> Iterator[Fields]:
    for document in documents:
        try:
            for fields in objects_of(document.open()):
                if isinstance(fields, dict):
                    yield fields
        except Refused as reason:
            result.errors.append(f"{document.name}: {reason}")


def _memories(fields: Fields, names: dict[str, str]) -> Iterator[str]:
    yield text_in(fields, "conversations_memory")
    of_projects = object_in(fields, "project_memories")
    for project in of_projects:
        text, name = text_in(of_projects, project).strip(), names.get(project)
        yield f"Of the project {name}: {text}" if text and name else text


def _project(fields: Fields) -> Iterator[str]:
    name = text_in(fields, "name")
    # An example that everybody is given says nothing of its owner.
    if name and not fields.get("is_starter_project"):
        if description := text_in(fields, "description"):
            yield f"The project {name}: {description}"
        if instructions := text_in(fields, "prompt_template"):
            yield f"Instructions of the project {name}: {instructions}"
