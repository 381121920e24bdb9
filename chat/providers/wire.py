"""A prompt in pydantic-ai's form, its images loaded."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from pydantic_ai import exceptions, messages

from chat import attachments
from chat.prompt import Said

Pictures = Mapping[UUID, bytes]


async def pictures_of(said: Sequence[Said]) -> Pictures:
    """The bytes of all images, read off the event loop."""
    shown = [image for one in said for image in one.images]
    return await asyncio.to_thread(attachments.read, shown) if shown else {}


def wire(said: Sequence[Said], pictures: Pictures) -> list[messages.ModelMessage]:
    """The messages in pydantic-ai's form: requests and responses by turns.

    An image whose bytes are not among `pictures` is told of in words.
    """
    names = {call.id: call.name for one in said for call in one.calls}
    told: list[messages.ModelMessage] = []
    for answered, some in groupby(said, key=lambda one: bool(one.answers)):
        if answered:
            told.append(_answers(some, names))
        else:
            told += [_message(one, pictures) for one in some]
    return told


def _answers(said: Iterable[Said], names: Mapping[str, str]) -> messages.ModelRequest:
    """What tools answered to one reply, together, as some providers demand."""
    parts = [
        messages.ToolReturnPart(
            tool_name=names.get(one.answers, ""), content=one.text, tool_call_id=one.answers
        )
        for one in said
    ]
    return messages.ModelRequest(parts=parts)


class Verbatim(messages.ToolCallPart):
    """A call whose arguments go back as the model wrote them, space for space."""

    def args_as_json_str(self) -> str:
        if isinstance(self.args, str) and self.args:
            return self.args
        return super().args_as_json_str()


def _message(said: Said, pictures: Pictures) -> messages.ModelMessage:
    if said.role == "assistant":
        words = [messages.TextPart(said.text)] if said.text or not said.calls else []
        calls = [Verbatim(one.name, one.arguments, one.id) for one in said.calls]
        return messages.ModelResponse(parts=[*words, *calls])
    if said.role == "system":
        return messages.ModelRequest(parts=[messages.SystemPromptPart(said.text)])
    return messages.ModelRequest(parts=[messages.UserPromptPart(_content(said, pictures))])


def _content(said: Said, pictures: Pictures) -> str | list[messages.UserContent]:
    """The images first and then the words, since so models see best.

    https://docs.claude.com/en/docs/build-with-claude/vision
    """
    seen = [image for image in said.images if image.id in pictures]
    told = tuple(image for image in said.images if image.id not in pictures)
    text = replace(said, images=told).written
    if not seen:
        return text
    parts = [messages.BinaryContent(pictures[one.id], media_type=one.media_type) for one in seen]
    return [*parts, text] if text else [*parts]


def may_be_blind(error: exceptions.ModelAPIError) -> bool:
    """Whether a request was refused perhaps for its images: servers differ in how they say so."""
    if isinstance(error, exceptions.ModelHTTPError) and "image" in str(error.body).lower():
        return True
    return is_refused(error)


def is_refused(error: Exception) -> bool:
    """Whether a request was refused for what it holds, and not for its key, model or length."""
    other = (
        exceptions.ModelAuthenticationError,
        exceptions.ModelNotFoundError,
        exceptions.ModelContextWindowExceededError,
    )
    return isinstance(error, exceptions.ModelRequestRejectedError) and not isinstance(error, other)
