"""ChatGPT's export: conversations.json, or its numbered parts; alone or in the zip file.

A list of conversations, each a `mapping` of nodes {id, parent, children, message} and the node
that was shown last, `current_node`. OpenAI documents nothing of it; what is hidden here is what
its page does not show.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from chat.importers.base import ImportedSession, ImportResult, Unusable
from chat.importers.elements import Fields, conversations, list_in, object_in, text_in
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

_MAPPING = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"mapping"\s*:\s*\{', re.DOTALL)
# A reference in the text, between characters of the private use area; the page shows a link.
_REFERENCE = re.compile("\ue200[^\ue201]*\ue201")
SHOWN = ("text", "multimodal_text")


def recognises(name: str, head: bytes) -> bool:
    return bool(_MAPPING.match(head)) and b'"children"' in head


def sessions(name: str, file: BinaryIO, result: ImportResult) -> Iterator[ImportedSession]:
    """The conversations in the order of the file, with every version of each message."""
    return conversations(file, result, _session)


def _session(fields: Fields, damaged: list[str]) -> ImportedSession:
    mapping = fields.get("mapping")
    key = text_in(fields, "conversation_id") or text_in(fields, "id")
    if not isinstance(mapping, dict) or not key:
        raise Unusable("It is no conversation.")
    nodes = {}
    for name, value in mapping.items():
        try:
            nodes[name] = _node(value)
        except Unusable as reason:
            damaged.append(f"Message {name}: {reason}")
            nodes[name] = Node(parent=_parent(value))
    begun = moment(fields.get("create_time"))
    messages, head = laid_out(nodes, fields.get("current_node"), begun)
    return ImportedSession(key, text_in(fields, "title"), messages, is_tree=True, head=head)


def _parent(node: object) -> str | None:
    return text_in(node, "parent") or None if isinstance(node, dict) else None


def _node(value: object) -> Node:
    """A node, without text if the page does not show it. Raises Unusable."""
    if value is None:
        return Node()
    if not isinstance(value, dict):
        raise Unusable("It is no message.")
    message = value.get("message")
    if message is None:
        return Node(parent=_parent(value))
    if not isinstance(message, dict):
        raise Unusable("It is no message.")
    role = text_in(object_in(message, "author"), "role")
    return Node(
        parent=_parent(value),
        role=Role.USER if role == "user" else Role.ASSISTANT,
        text=_text(message, role),
        at=moment(message.get("create_time")),
        own=role == "user",
        model=text_in(object_in(message, "metadata"), "model_slug"),
    )


def _text(message: Fields, role: str) -> str:
    """What the page shows of a message: nothing of instructions, thoughts, and calls of tools."""
    content, metadata = object_in(message, "content"), object_in(message, "metadata")
    hidden = (
        metadata.get("is_visually_hidden_from_conversation")
        or metadata.get("is_thinking_preamble_message")
        or message.get("channel") == "analysis"
        or message.get("recipient") not in (None, "all")
        or content.get("content_type") not in SHOWN
    )
    if hidden or role not in ("user", "assistant", "tool"):
        return ""
    parts = content.get("parts")
    if not isinstance(parts, list):
        raise Unusable("It has no content.")
    names = _attachments(metadata)
    # A tool's text is for the model; the images that it made are shown as the answer.
    told = [_image(part, names) or ("" if role == "tool" else _words(part)) for part in parts]
    if role == "user":
        told += [f"[file: {name}]" for name in names.values()]
    return _without_references("\n\n".join(filter(None, told)), metadata)


def _words(part: object) -> str:
    """A text, or what was said aloud."""
    if isinstance(part, str):
        return part
    return text_in(part, "text") if isinstance(part, dict) else ""


def _attachments(metadata: Fields) -> dict[str, str]:
    """The names of the files that came with a message, by id."""
    files = (file for file in list_in(metadata, "attachments") if isinstance(file, dict))
    return {text_in(file, "id"): text_in(file, "name") for file in files if text_in(file, "name")}


def _image(part: object, names: dict[str, str]) -> str:
    """A note in place of an image, with what it was made from or the name of its file.

    What is told of here is taken out of `names`.
    """
    if not isinstance(part, dict) or part.get("content_type") != "image_asset_pointer":
        return ""
    file = re.sub(r"^[a-z-]+://", "", text_in(part, "asset_pointer"))
    named = names.pop(file, "")
    made = object_in(object_in(part, "metadata"), "dalle")
    description = text_in(made, "prompt") or named
    return f"[image: {description}]" if description else "[image]"


def _without_references(text: str, metadata: Fields) -> str:
    for reference in list_in(metadata, "content_references"):
        if isinstance(reference, dict):
            mark = text_in(reference, "matched_text")
            if mark.startswith("\ue200"):
                text = text.replace(mark, text_in(reference, "alt"))
    return _REFERENCE.sub("", text)
