"""What a program brings along with a request: the messages of a conversation, as it knows them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chat import tooling
from chat.images import Encoded
from chat.models import Message, Role
from chat.replies import draft
from chat.sight import Image
from chat.tooling import ToolCall
from projects.identifiers import new_id

# By the address under which a request names them: images made anew. What is missing is not shown.
Loaded = Mapping[str, Encoded]


@dataclass(frozen=True)
class Told:
    """One message of a request. `name` is whoever says it, or the tool; `images` are addresses."""

    role: str
    text: str
    name: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""
    images: tuple[str, ...] = ()


def drafted(told: Told, user, **fields) -> Message:
    """As a message of `user`, or of the assistant, that has no place yet."""
    return draft(
        told.text,
        role=told.role,
        author=None if told.role == Role.ASSISTANT else user,
        author_name=told.name,
        tool_calls=tooling.written(told.calls),
        tool_call_id=told.answers,
        **fields,
    )


def pictures(told: Told, loaded: Loaded) -> tuple[Image, ...]:
    """Its images as prompts know them, kept nowhere."""
    shown: Iterable[Encoded] = (loaded[one] for one in told.images if one in loaded)
    return tuple(
        Image(new_id(), one.media_type, "", one.width, one.height, data=one.data) for one in shown
    )
