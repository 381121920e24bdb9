"""ChatGPT's export: conversations.json, or its numbered parts; alone or in the zip file.

A list of conversations, each a `mapping` of nodes {id, parent, children, message} and the node
that was shown last, `current_node`. OpenAI documents nothing of it; what is hidden here is what
its page does not show.
"""

import re
from collections.abc import Iterator, Mapping

from chat.importers.base import Document, ImportedImage, ImportedSession, ImportResult, Unusable
from chat.importers.elements import conversations, objects_of
from chat.importers.fields import (
    Fields,
    an_object,
    object_in,
    objects_in,
    readable,
    text_in,
)
from chat.importers.images import MOST_A_MESSAGE, beside
from chat.importers.times import moment
from chat.importers.trees import Node, laid_out
from chat.models import Role

_MAPPING = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"mapping"\s*:\s*\{', re.DOTALL)
# A reference in the text, between characters of the private use area; the page shows a link.
_REFERENCE = re.compile("\ue200[^\ue201]*\ue201")
SHOWN = ("text", "multimodal_text")


def recognises(name: str, head: bytes) -> bool:
    return bool(_MAPPING.match(head)) and b'"children"' in head


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The conversations in the order of the file, with every version of each message."""

    def read(fields: Fields, damaged: list[str]) -> ImportedSession:
        return _session(fields, damaged, document.images)

    return conversations(objects_of(document.open()), result, read)


def _session(fields: Fields, damaged: list[str], files: Mapping[str, Document]) -> ImportedSession:
    mapping = fields.get("mapping")
    key = text_in(fields, "conversation_id") or text_in(fields, "id")
    if not isinstance(mapping, dict) or not key:
        raise Unusable("It is no conversation.")
    # What is damaged keeps its place: what follows it follows its parent.
    nodes = {name: Node(parent=_parent(value)) for name, value in mapping.items()}
    nodes |= readable(mapping.items(), lambda value: _node(value, files), damaged)
    begun = moment(fields.get("create_time"))
    messages, head = laid_out(nodes, fields.get("current_node"), begun)
    return ImportedSession(key, text_in(fields, "title"), messages, is_tree=True, head=head)


def _parent(node: object) -> str | None:
    return text_in(node, "parent") or None if isinstance(node, dict) else None


def _node(value: object, files: Mapping[str, Document]) -> Node:
    """A node, without text if the page does not show it. Raises Unusable."""
    if value is None or an_object(value).get("message") is None:
        return Node(parent=_parent(value))
    message = an_object(an_object(value)["message"])
    role = text_in(object_in(message, "author"), "role")
    text, images = _shown(message, role, files)
    return Node(
        parent=_parent(value),
        role=Role.USER if role == "user" else Role.ASSISTANT,
        text=text,
        at=moment(message.get("create_time")),
        own=role == "user",
        model=text_in(object_in(message, "metadata"), "model_slug"),
        images=images,
    )


def _shown(
    message: Fields, role: str, files: Mapping[str, Document]
) -> tuple[str, tuple[ImportedImage, ...]]:
    """What the page shows of a message: nothing of instructions, thoughts, and calls of tools.

    Images that are not among `files` are notes in the text.
    """
    content, metadata = object_in(message, "content"), object_in(message, "metadata")
    hidden = (
        metadata.get("is_visually_hidden_from_conversation")
        or metadata.get("is_thinking_preamble_message")
        or message.get("channel") == "analysis"
        or message.get("recipient") not in (None, "all")
        or content.get("content_type") not in SHOWN
    )
    if hidden or role not in ("user", "assistant", "tool"):
        return "", ()
    if not isinstance(content.get("parts"), list):
        raise Unusable("It has no content.")
    names = _attachments(metadata)
    told: list[str] = []
    images: list[ImportedImage] = []
    for part in content["parts"]:
        if isinstance(part, dict) and part.get("content_type") == "image_asset_pointer":
            file, name, description = _image(part, names)
            image = beside(files.get(file), name, description)
            if image and len(images) < MOST_A_MESSAGE:
                images.append(image)
            else:
                told.append(_note(description or name))
        elif role != "tool":
            # A tool's text is for the model; the images that it made are shown as the answer.
            told.append(_words(part))
    if role == "user":
        told += [f"[file: {name}]" for name in names.values()]
    return _without_references("\n\n".join(filter(None, told)), metadata), tuple(images)


def _words(part: object) -> str:
    """A text, or what was said aloud."""
    if isinstance(part, str):
        return part
    return text_in(part, "text") if isinstance(part, dict) else ""


def _attachments(metadata: Fields) -> dict[str, str]:
    """The names of the files that came with a message, by id."""
    files = objects_in(metadata, "attachments")
    return {text_in(file, "id"): text_in(file, "name") for file in files if text_in(file, "name")}


def _image(part: Fields, names: dict[str, str]) -> tuple[str, str, str]:
    """An image's id, the name of its file, and what it was made from.

    Its name is taken out of `names`.
    """
    file = re.sub(r"^[a-z-]+://", "", text_in(part, "asset_pointer"))
    made = object_in(object_in(part, "metadata"), "dalle")
    return file, names.pop(file, ""), text_in(made, "prompt")


def _note(description: str) -> str:
    return f"[image: {description}]" if description else "[image]"


def _without_references(text: str, metadata: Fields) -> str:
    for reference in objects_in(metadata, "content_references"):
        mark = text_in(reference, "matched_text")
        if mark.startswith("\ue200"):
            text = text.replace(mark, text_in(reference, "alt"))
    return _REFERENCE.sub("", text)
