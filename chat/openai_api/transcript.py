"""Parses the messages of a request into a transcript; converts them to messages of a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chat.attachments import MAX_IMAGES_PER_MESSAGE, TOO_MANY_IMAGES
from chat.attachments.images import EncodedImage
from chat.conversations.messages import MAX_MESSAGE_CHARS, draft
from chat.models import Message, Role
from chat.prompt.types import PromptImage, ToolCall, dump_tool_calls
from projects.core.errors import InvalidInputError
from projects.core.models import new_id
from projects.core.text import storable

MAX_MESSAGES = 2_048
# The maximum length of an author's name, the size of `Message.author_name`.
MAX_NAME_CHARS = 120
# The names of the system role. Newer models call it "developer".
SYSTEM_ROLES = ("system", "developer")
ROLES = (*SYSTEM_ROLES, Role.USER, Role.ASSISTANT, Role.TOOL)

# Encoded images by their URL in the request. Images that are not in it are left out of prompts.
LoadedImages = Mapping[str, EncodedImage]


@dataclass(frozen=True)
class TranscriptMessage:
    """One message of a request. `name` is the name of its author, and `images` are URLs.

    `calls` are the tool calls of an assistant's message. `tool_call_id` is the call that a tool's
    message answers.
    """

    role: str
    text: str
    name: str = ""
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """The messages of a request. Its system messages are joined into one text."""

    system: str
    messages: tuple[TranscriptMessage, ...]


def parse_transcript(messages: Sequence[Any]) -> Transcript:
    """Return the transcript of `messages`.

    In the prompt, system messages precede all other messages. Raises `InvalidInputError`, with the
    position of the error as `field`.
    """
    if not messages or len(messages) > MAX_MESSAGES:
        raise InvalidInputError(
            f"A request has from 1 to {MAX_MESSAGES} messages.", field="messages"
        )
    parsed = [_parse_message(it, f"messages[{index}]") for index, it in enumerate(messages)]
    _check_tool_results(parsed)
    system = "\n\n".join(it.text for it in parsed if it.role == Role.SYSTEM and it.text)
    return Transcript(system, tuple(it for it in parsed if it.role != Role.SYSTEM))


def draft_message(message: TranscriptMessage, user, **fields) -> Message:
    """Return `message`, unsaved. `user` is its author, even if its role is assistant."""
    return draft(
        message.text,
        role=message.role,
        author=user,
        author_name=message.name,
        tool_calls=dump_tool_calls(message.calls),
        tool_call_id=message.tool_call_id,
        **fields,
    )


def prompt_images(message: TranscriptMessage, loaded: LoadedImages) -> tuple[PromptImage, ...]:
    """Return the images of `message` for a prompt. They are not stored."""
    images = [loaded[url] for url in message.images if url in loaded]
    return tuple(
        PromptImage(new_id(), it.media_type, "", it.width, it.height, data=it.data) for it in images
    )


def _parse_message(fields: Any, position: str) -> TranscriptMessage:
    if not isinstance(fields, dict):
        raise _wrong_type("A message is an object.", position)
    role = fields.get("role")
    if role not in ROLES:
        raise InvalidInputError(f"A role is one of {', '.join(ROLES)}.", field=f"{position}.role")
    text, images = _parse_content(fields.get("content"), f"{position}.content")
    if images and role != Role.USER:
        reason = "Only a message of a user takes images."
        raise InvalidInputError(reason, field=f"{position}.content")
    if len(images) > MAX_IMAGES_PER_MESSAGE:
        raise InvalidInputError(TOO_MANY_IMAGES, field=f"{position}.content")
    calls: tuple[ToolCall, ...] = ()
    if role == Role.ASSISTANT:
        calls = _parse_tool_calls(fields.get("tool_calls"), f"{position}.tool_calls")
    tool_call_id = _parse_text(fields, "tool_call_id", position) if role == Role.TOOL else ""
    name = storable(str(fields.get("name") or ""))[:MAX_NAME_CHARS]
    return TranscriptMessage(
        Role.SYSTEM if role in SYSTEM_ROLES else Role(role),
        text,
        # Left out for assistants: it is the name of a model.
        name if role != Role.ASSISTANT else "",
        calls,
        tool_call_id,
        images,
    )


def _parse_content(content: Any, position: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a message and the URLs of its images."""
    if content is None:
        return "", ()
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list):
        raise _wrong_type("The content is a text or a list of parts.", position)
    texts, images = [], []
    for index, part in enumerate(parts):
        part_position = f"{position}[{index}]" if parts is content else position
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal"):
            texts.append(_parse_text(part, kind, part_position, allow_empty=True))
        elif kind == "image_url":
            image = part.get("image_url")
            image = image if isinstance(image, dict) else {}
            images.append(_parse_text(image, "url", f"{part_position}.image_url"))
        else:
            reason = f"Parts of the type {kind!r} are not supported; text and image_url are."
            raise InvalidInputError(reason, code="unsupported_value", field=part_position)
    text = "\n".join(texts)
    if len(text) > MAX_MESSAGE_CHARS:
        reason = f"A message has at most {MAX_MESSAGE_CHARS:,} characters."
        raise InvalidInputError(reason, code="string_above_max_length", field=position)
    return text, tuple(images)


def _parse_tool_calls(calls: Any, position: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise _wrong_type("Tool calls are a list.", position)
    return tuple(_parse_tool_call(it, f"{position}[{index}]") for index, it in enumerate(calls))


def _parse_tool_call(call: Any, position: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        reason = "Only functions can be called."
        raise InvalidInputError(reason, code="unsupported_value", field=position)
    function_position = f"{position}.function"
    return ToolCall(
        id=_parse_text(call, "id", position),
        name=_parse_text(function, "name", function_position),
        arguments=_parse_text(function, "arguments", function_position, allow_empty=True),
    )


def _parse_text(
    fields: Mapping[str, Any], name: str, position: str, allow_empty: bool = False
) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not (value or allow_empty):
        raise _wrong_type("A text is missing here.", f"{position}.{name}")
    return storable(value)


def _wrong_type(reason: str, position: str) -> InvalidInputError:
    return InvalidInputError(reason, code="invalid_type", field=position)


def _check_tool_results(messages: Sequence[TranscriptMessage]) -> None:
    """Raise `InvalidInputError` unless each tool result follows the message with its call.

    OpenAI has the same rule.
    """
    call_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message.tool_call_id and message.tool_call_id not in call_ids:
            raise InvalidInputError(
                "A message with the role tool answers a call of the assistant's message before it.",
                field=f"messages[{index}].tool_call_id",
            )
        if not message.tool_call_id:
            call_ids = {call.id for call in message.calls}
