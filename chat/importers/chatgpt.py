"""ChatGPT's export: conversations.json or its numbered parts, separate or in a zip file.

It is a list of conversations. Each has a `mapping` of nodes {id, parent, children, message}, and
the id of the last node that was shown, `current_node`. The format is not documented. Messages that
ChatGPT's page does not show are skipped. Documents of the canvas are arguments of tool calls, and
reports of Deep Research are the state of a widget. The page shows both.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from chat.importers.base import (
    ImportedFile,
    ImportedImage,
    ImportedSession,
    ImportRejectedError,
    ImportResult,
    InvalidItemError,
    first_plausible,
    parse_time,
    quoted_document,
)
from chat.importers.images import MAX_IMAGES_PER_MESSAGE, image_from_zip
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

_MAPPING = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"mapping"\s*:\s*\{', re.DOTALL)
# A reference, which ChatGPT shows as a link or a name: text between characters of the private use
# area. Its first field is its kind.
_REFERENCE = re.compile("\ue200[^\ue200\ue201]*\ue201")
_FIELD_SEPARATOR = "\ue202"
# Other marks, such as those around the sentence that a reference supports.
_MARKS = re.compile("[\ue200-\ue206]")
SHOWN = ("text", "multimodal_text")
CANVAS = ("canmore.create_textdoc", "canmore.update_textdoc")
MAX_REFERENCES_CHARS = 500_000
# Documents whose text becomes a part of their message. ChatGPT stores a long text that is pasted as
# “Pasted text.txt”.
TEXT_FILES = (
    *(".txt", ".md", ".csv", ".tsv", ".json", ".log", ".yaml", ".yml", ".xml", ".html", ".css"),
    *(".js", ".ts", ".py", ".java", ".c", ".cpp", ".go", ".rs", ".sh", ".sql"),
)
# The maximum sizes of all documents of one conversation, and of all conversations: many messages
# can name the same document.
MAX_DOCUMENTS_BYTES, MAX_ALL_DOCUMENTS_BYTES = 2 * 2**20, 2**30


class ConversationFiles:
    """The files of the zip file, by id, for the messages of one conversation."""

    def __init__(self, files: Mapping[str, ImportedFile], result: ImportResult) -> None:
        self._files, self._result = files, result
        self._room = MAX_DOCUMENTS_BYTES
        self._too_long: set[str] = set()

    def image(self, file: str, name: str, description: str) -> ImportedImage | None:
        return image_from_zip(self._files.get(file), name, description)

    def document(self, file: str, name: str) -> str:
        """Return the text of a document, or a note if it is missing, too long or not a text."""
        found = self._files.get(file) if name.lower().endswith(TEXT_FILES) else None
        text = ""
        room = min(self._room, MAX_ALL_DOCUMENTS_BYTES - self._result.document_bytes)
        if found is not None and room > 0 and file not in self._too_long:
            with suppress(ImportRejectedError, UnicodeDecodeError):
                data = found.open().read(room + 1)
                self._result.document_bytes += len(data)
                if len(data) > room:
                    self._too_long.add(file)
                else:
                    self._room -= len(data)
                    text = data.decode("utf-8-sig")
        return quoted_document(name, text) if text.strip() else f"[file: {name}]"


def recognises(name: str, head: bytes) -> bool:
    return bool(_MAPPING.match(head)) and b'"children"' in head


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the conversations in the order of the file, with all alternatives of each message."""

    def read(fields: JSONObject, errors: list[str]) -> ImportedSession:
        return _session(fields, errors, ConversationFiles(document.images, result))

    return read_conversations(iter_objects(document.open()), result, read)


def _session(fields: JSONObject, errors: list[str], files: ConversationFiles) -> ImportedSession:
    mapping = fields.get("mapping")
    key = get_text(fields, "conversation_id") or get_text(fields, "id")
    if not isinstance(mapping, dict) or not key:
        raise InvalidItemError("It is not a conversation.")
    # A damaged message becomes an empty node, so that its children are attached to its parent.
    nodes = {name: TreeNode(parent=_parent(value)) for name, value in mapping.items()}
    nodes |= parse_each(mapping.items(), lambda value: _node(value, files), errors)
    start = parse_time(fields.get("create_time"))
    messages, head = order_messages(nodes, fields.get("current_node"), start)
    updated = parse_time(fields.get("update_time"))
    remembered = fields.get("is_do_not_remember") is not True
    return ImportedSession(
        key,
        get_text(fields, "title"),
        [replace(message, remembered=remembered) for message in messages],
        is_tree=True,
        head=head,
        remembered=remembered,
        archived_at=first_plausible(updated, start) if fields.get("is_archived") is True else None,
    )


def _parent(node: object) -> str | None:
    return get_text(node, "parent") or None if isinstance(node, dict) else None


def _node(value: object, files: ConversationFiles) -> TreeNode:
    """Return a node. It has no text if ChatGPT hides the message. Raises `InvalidItemError`."""
    if value is None or require_object(value).get("message") is None:
        return TreeNode(parent=_parent(value))
    message = require_object(require_object(value)["message"])
    role = get_text(get_object(message, "author"), "role")
    text, images = _visible_content(message, role, files)
    return TreeNode(
        parent=_parent(value),
        role=Role.USER if role == "user" else Role.ASSISTANT,
        text=text,
        at=parse_time(message.get("create_time")),
        own=role == "user",
        model=get_text(get_object(message, "metadata"), "model_slug"),
        images=images,
    )


def _visible_content(
    message: JSONObject, role: str, files: ConversationFiles
) -> tuple[str, tuple[ImportedImage, ...]]:
    """Return the visible text and images of a message, without instructions, reasoning and tool
    calls. An image that is not in `files` is replaced by a note in the text. A document of the user
    is a part of the text, if it is a text in `files`.
    """
    content, metadata = get_object(message, "content"), get_object(message, "metadata")
    if (
        metadata.get("is_visually_hidden_from_conversation")
        or metadata.get("is_thinking_preamble_message")
        or message.get("channel") == "analysis"
        or role not in ("user", "assistant", "tool")
    ):
        return "", ()
    if role == "assistant" and message.get("recipient") in CANVAS:
        return _canvas(content), ()
    if role == "tool" and (report := _research_report(metadata)):
        return report, ()
    if message.get("recipient") not in (None, "all") or content.get("content_type") not in SHOWN:
        return "", ()
    if not isinstance(content.get("parts"), list):
        raise InvalidItemError("It has no content.")
    names = _attachments(metadata)
    texts: list[str] = []
    images: list[ImportedImage] = []
    for part in content["parts"]:
        if isinstance(part, dict) and part.get("content_type") == "image_asset_pointer":
            file, name, description = _image(part, names)
            image = files.image(file, name, description)
            if image and len(images) < MAX_IMAGES_PER_MESSAGE:
                images.append(image)
            else:
                texts.append(_note(description or name))
        elif role != "tool":
            # The text of a tool's result is for the model, but its images are part of the answer.
            texts.append(_part_text(part))
    if role == "user":
        texts += [files.document(file, name) for file, name in names.items()]
    return _without_references("\n\n".join(filter(None, texts)), metadata), tuple(images)


def _canvas(content: JSONObject) -> str:
    """Return the document that a call of the canvas creates, or the new texts of an update."""
    parts = [part for part in get_list(content, "parts") if isinstance(part, str)]
    call = _json_object(get_text(content, "text") or "".join(parts))
    name, kind = get_text(call, "name") or "Canvas", get_text(call, "type")
    language = kind.removeprefix("code/") if kind.startswith("code/") else ""
    texts = [get_text(call, "content")]
    texts += [get_text(update, "replacement") for update in get_objects(call, "updates")]
    return "\n\n".join(quoted_document(name, text, language) for text in texts if text.strip())


def _research_report(metadata: JSONObject) -> str:
    """Return the report of Deep Research, or "" if the message has none."""
    widget = get_object(metadata, "chatgpt_sdk")
    state = get_object(widget, "widget_state") or _json_object(get_text(widget, "widget_state"))
    report = get_object(state, "report_message")
    parts = get_list(get_object(report, "content"), "parts")
    text = "\n\n".join(part for part in parts if isinstance(part, str))
    return _without_references(text, get_object(report, "metadata"))


def _json_object(text: str) -> JSONObject:
    """Return the JSON object in `text`, or an empty object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _part_text(part: object) -> str:
    """Return the text of a part, or the transcript of speech."""
    if isinstance(part, str):
        return part
    return get_text(part, "text") if isinstance(part, dict) else ""


def _attachments(metadata: JSONObject) -> dict[str, str]:
    """Return the names of a message's files, by id."""
    files = get_objects(metadata, "attachments")
    return {
        get_text(file, "id"): get_text(file, "name") for file in files if get_text(file, "name")
    }


def _image(part: JSONObject, names: dict[str, str]) -> tuple[str, str, str]:
    """Return the id, file name and prompt of an image. Remove its name from `names`."""
    file = re.sub(r"^[a-z-]+://", "", get_text(part, "asset_pointer"))
    generation = get_object(get_object(part, "metadata"), "dalle")
    return file, names.pop(file, ""), get_text(generation, "prompt")


def _note(description: str) -> str:
    return f"[image: {description}]" if description else "[image]"


def _without_references(text: str, metadata: JSONObject) -> str:
    """Replace references by the text that ChatGPT shows. All replacements together have at most
    MAX_REFERENCES_CHARS, because a small file could make the text grow without limit.
    """
    shown: dict[str, str] = {}
    for reference in get_objects(metadata, "content_references"):
        name = get_text(reference, "alt") or get_text(reference, "name")
        shown.setdefault(get_text(reference, "matched_text"), name)
    room = MAX_REFERENCES_CHARS

    def label(match: re.Match[str]) -> str:
        nonlocal room
        text = shown.get(match[0]) or _label(match[0])
        room -= len(text)
        return text if room >= 0 else ""

    # Replacements may contain references, which are left out.
    return _MARKS.sub("", _REFERENCE.sub("", _REFERENCE.sub(label, text)))


def _label(reference: str) -> str:
    """Return the text that a reference itself contains, or "". References to a source have none."""
    kind, *fields = reference[1:-1].split(_FIELD_SEPARATOR)
    first = fields[0] if fields else ""
    if kind in ("url", "link_title"):
        return first
    if kind == "entity":
        # Such as ["city", "Bern", "capital of Switzerland"].
        entity = get_list(_json_object(f'{{"entity": {first}}}'), "entity")
        return entity[1] if len(entity) > 1 and isinstance(entity[1], str) else ""
    if kind == "genui":
        # A widget of a formula: {name: {"content": formula}}.
        widgets = [widget for widget in _json_object(first).values() if isinstance(widget, dict)]
        return "".join(f"\\({text}\\)" for it in widgets if (text := get_text(it, "content")))
    return ""
