"""A prompt in pydantic-ai's form, its images loaded."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    return [_message(one, pictures) for one in said]


def _message(said: Said, pictures: Pictures) -> messages.ModelMessage:
    if said.role == "assistant":
        return messages.ModelResponse(parts=[messages.TextPart(said.text)])
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
