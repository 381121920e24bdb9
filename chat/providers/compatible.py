"""Servers of OpenAI's chat completions API: the SDK's client, and models that read their streams.

Many servers differ from OpenAI's. They reject newer fields, report the tokens so far in each event,
or number all tool calls of a reply with 0.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cached_property
from typing import Any

import httpx2
from openai import AsyncOpenAI, BadRequestError, Omit, UnprocessableEntityError
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.providers.openai import OpenAIProvider

# Fields that some servers reject, such as Mistral's, and the field to send instead.
REPLACED_FIELDS = {"max_completion_tokens": "max_tokens", "stream_options": ""}
# How servers name the reason. A value that is too large is rejected in other words.
_UNKNOWN_FIELD = re.compile(
    "extra|unrecogni[sz]ed|unknown|unsupported|unexpected|additional propert"
    "|not (?:permitted|allowed|supported)",
    re.IGNORECASE,
)
MAX_ERROR_CHARS = 2_000
# Pairs (address of a server, field that it rejected). Kept until this process ends.
_rejected_fields: set[tuple[str, str]] = set()


def openai_provider(
    base_url: str | None, http: httpx2.AsyncClient, key: str | None = None
) -> OpenAIProvider:
    """Return a provider that sends its requests through `http`.

    Without `base_url`, server and key are read from the environment. Raises `UserError` if there is
    no key.
    """
    default = OpenAIProvider(base_url=base_url, api_key=key, http_client=http).client
    client = RawMessagesClient(base_url=default.base_url, api_key=default.api_key, http_client=http)
    return OpenAIProvider(openai_client=client)


class RawMessagesClient(AsyncOpenAI):
    """The SDK's client, but it sends messages without transforming them.

    The SDK compares each message with all message types, to find keys to rename and files to read.
    Chat completions need neither. The comparison would block the event loop for 0.3 ms per message.
    """

    @cached_property
    def chat(self) -> AsyncChat:
        return _RawChat(self)


class _RawChat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _RawCompletions(self._client)


class _RawCompletions(AsyncCompletions):
    async def create(  # type: ignore[override]
        self,
        *,
        messages: Iterable[ChatCompletionMessageParam],
        extra_body: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Any:
        """Send the request. If the server rejects one of REPLACED_FIELDS, send it without it."""
        body = {"messages": list(messages)} | dict(extra_body or {})
        address = str(self._client.base_url)
        while True:
            sent = _without(params, {name for at, name in _rejected_fields if at == address})
            try:
                return await super().create(messages=[], extra_body=body, **sent)
            except (BadRequestError, UnprocessableEntityError) as error:
                text = str(error.body)[:MAX_ERROR_CHARS]
                rejected = {name for name in REPLACED_FIELDS if name in sent and name in text}
                if not rejected or not _UNKNOWN_FIELD.search(text):
                    raise
            _rejected_fields.update((address, name) for name in rejected)


def _without(params: Mapping[str, Any], rejected: Iterable[str]) -> dict[str, Any]:
    """Return `params` with the replacements of the `rejected` fields."""
    sent = {name: value for name, value in params.items() if not isinstance(value, Omit)}
    for name in rejected:
        value = sent.pop(name, None)
        if value is not None and REPLACED_FIELDS[name]:
            sent[REPLACED_FIELDS[name]] = value
    return sent


class CompatibleModel(OpenAIChatModel):
    """A model on a server of OpenAI's API, with the streams of `CompatibleStream`."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return CompatibleStream


class CompatibleStream(OpenAIStreamedResponse):
    """A stream in which the last reported usage counts, and each tool call has its own number.

    Google's API reports the tokens so far in each event, which pydantic-ai would add up. It also
    numbers all tool calls with 0, which pydantic-ai would join to one call.
    """

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        usage, last = None, None
        # By the server's number: the id of the latest call, and its own number.
        calls: dict[int, tuple[str, int]] = {}
        async for chunk in self._response:
            usage, last = chunk.usage or usage, chunk
            chunk.usage = None
            for choice in chunk.choices or ():
                _number_calls(choice.delta, calls)
            yield chunk
        if last is not None and usage is not None and _is_counted(usage):
            yield last.model_copy(update={"choices": [], "usage": usage})


def _number_calls(delta: ChoiceDelta | None, calls: dict[int, tuple[str, int]]) -> None:
    """Replace the numbers of tool calls. A call begins with an id and a name."""
    for call in (delta and delta.tool_calls) or ():
        name = call.function.name if call.function else None
        known = calls.get(call.index)
        if known is None or (name and call.id and call.id != known[0]):
            number = max((number for _, number in calls.values()), default=-1) + 1
            known = calls[call.index] = (call.id or "", number)
        # Older versions of vLLM send another id with each part of a call.
        call.id, call.index = known[0] or call.id, known[1]


def _is_counted(usage: CompletionUsage) -> bool:
    """Return False if a number is missing, or if both are 0, as in servers that do not count."""
    numbers = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    return None not in numbers and any(numbers)
