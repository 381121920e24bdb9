"""The messages of a request, read from OpenAI's wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chat.api.completions.errors import Refused
from chat.attachments import MOST_A_MESSAGE, TOO_MANY
from chat.models import Role
from chat.replies import LONGEST_MESSAGE
from chat.requested import Told
from chat.storable import storable
from chat.tooling import ToolCall

MOST_MESSAGES = 2_048
# As `Message.author_name` takes.
LONGEST_NAME = 120
# Newer models' name for what programs tell them, beside the older one.
SYSTEM = ("system", "developer")
ROLES = (*SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL)

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Read:
    """A request's messages: what its program tells the model itself, and what was said."""

    system: str
    told: tuple[Told, ...]


def read(messages: Sequence[Any]) -> Read:
    """Raises Refused, which names the place of what is wrong.

    System messages are put together, wherever they stand: they open the prompt.
    """
    if not messages or len(messages) > MOST_MESSAGES:
        raise Refused(f"A request has from 1 to {MOST_MESSAGES} messages.", "messages")
    found = [_message(one, f"messages[{place}]") for place, one in enumerate(messages)]
    _refuse_loose_answers(found)
    system = "\n\n".join(one.text for one in found if one.role == Role.SYSTEM and one.text)
    return Read(system, tuple(one for one in found if one.role != Role.SYSTEM))


def _message(fields: Any, place: str) -> Told:
    if not isinstance(fields, dict):
        raise Refused("A message is an object.", place, "invalid_type")
    role = fields.get("role")
    if role not in ROLES:
        raise Refused(f"A role is one of {', '.join(ROLES)}.", f"{place}.role")
    text, images = _content(fields.get("content"), f"{place}.content")
    if images and role != Role.USER:
        raise Refused("Only a message of a user takes images.", f"{place}.content")
    if len(images) > MOST_A_MESSAGE:
        raise Refused(str(TOO_MANY), f"{place}.content")
    calls = _calls(fields.get("tool_calls"), f"{place}.tool_calls") if role == "assistant" else ()
    answers = _word(fields, "tool_call_id", place) if role == Role.TOOL else ""
    name = storable(str(fields.get("name") or ""))[:LONGEST_NAME]
    return Told(
        Role.SYSTEM if role in SYSTEM else Role(role),
        text,
        # A model speaks under its own name.
        name if role != Role.ASSISTANT else "",
        calls,
        answers,
        images,
    )


def _content(content: Any, place: str) -> tuple[str, tuple[str, ...]]:
    """The words of a message and the addresses of its images."""
    if content is None:
        return "", ()
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list):
        raise Refused("The content is a text or a list of parts.", place, "invalid_type")
    texts, images = [], []
    for number, part in enumerate(parts):
        at = f"{place}[{number}]" if parts is content else place
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal"):
            texts.append(_word(part, kind, at, empty=True))
        elif kind == "image_url":
            image = part.get("image_url")
            images.append(_word(image if isinstance(image, dict) else {}, "url", f"{at}.image_url"))
        else:
            reason = f"Parts of the type {kind!r} are not taken here; text and image_url are."
            raise Refused(reason, at, "unsupported_value")
    text = "\n".join(texts)
    if len(text) > LONGEST_MESSAGE:
        reason = f"A message has at most {LONGEST_MESSAGE:,} characters."
        raise Refused(reason, place, "string_above_max_length")
    return text, tuple(images)


def _calls(calls: Any, place: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise Refused("Calls of tools are a list.", place, "invalid_type")
    return tuple(_call(call, f"{place}[{number}]") for number, call in enumerate(calls))


def _call(call: Any, place: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise Refused("Only functions can be called.", place, "unsupported_value")
    at = f"{place}.function"
    arguments = _word(function, "arguments", at, empty=True)
    return ToolCall(_word(call, "id", place), _word(function, "name", at), arguments)


def _word(fields: Fields, name: str, place: str, empty: bool = False) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise Refused("A text is missing here.", f"{place}.{name}", "invalid_type")
    return storable(value)


def _refuse_loose_answers(messages: Sequence[Told]) -> None:
    """An answer of a tool follows the message that called it, as OpenAI demands."""
    called: set[str] = set()
    for place, one in enumerate(messages):
        if one.answers and one.answers not in called:
            raise Refused(
                "A message with the role tool answers a call of the assistant's message before it.",
                f"messages[{place}].tool_call_id",
            )
        if not one.answers:
            called = {call.id for call in one.calls}
