"""Servers of OpenAI's chat completions API: the SDK's client, and models that read their streams.

Many servers differ from OpenAI's. They reject newer fields, report the tokens so far in each event,
or number all tool calls of a reply with 0.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import httpx2
from openai import (
    AsyncOpenAI,
    BadRequestError,
    InternalServerError,
    Omit,
    UnprocessableEntityError,
)
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

# The hosts whose limit of tokens is `max_completion_tokens`. Others expect `max_tokens`: Ollama,
# OpenRouter, LM Studio and DeepSeek ignore the newer name, and Mistral rejects it.
NEW_LIMIT_HOSTS = (".openai.com", ".azure.com")
# Fields that some servers or models reject, and the field to send instead.
LIMITS = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
REPLACED_FIELDS = {
    **LIMITS,
    **dict.fromkeys(("stream_options", "temperature", "top_p", "reasoning_effort"), ""),
}
# How servers reject a field. The errors about a value that is too large do not match.
_UNKNOWN_FIELD = re.compile(
    "extra|unrecogni[sz]ed|unknown|unsupported|unexpected|additional propert"
    "|not (?:permitted|allowed|supported)|does not support",
    re.IGNORECASE,
)
# The errors with which Google and vLLM reject system messages for Gemma.
_NO_SYSTEM = re.compile("developer instruction is not enabled|system role", re.IGNORECASE)
SYSTEM_ROLES = ("system", "developer")
MAX_ERROR_CHARS = 2_000
# What models reject: names of fields, and SYSTEM_ROLES[0] for system messages. The key is the
# address of the server, the name of the model, and the reasoning effort: a model may support only
# some efforts, and a temperature only without reasoning. The latest MAX_REJECTED are kept until
# this process ends.
_rejected: dict[tuple[str, str, str], frozenset[str]] = {}
MAX_REJECTED, MAX_KEY_CHARS = 1_000, 200
# The maximum number of tool calls of a reply, and the maximum length of all their arguments.
# pydantic-ai compares each call with all before it, and copies the arguments with each piece of
# them: 20,000 calls kept a process busy for five minutes.
MAX_TOOL_CALLS, MAX_ARGUMENT_CHARS = 1_000, 1_000_000


def openai_provider(
    base_url: str | None, http: httpx2.AsyncClient, key: str | None = None
) -> OpenAIProvider:
    """Return a provider that sends its requests through `http`.

    What is None is read from the environment. Raises `UserError` if OpenAI's own server has no key.
    """
    default = OpenAIProvider(base_url=base_url, api_key=key, http_client=http).client
    return OpenAIProvider(openai_client=_raw_client(default, http))


def ollama_provider(http: httpx2.AsyncClient) -> OllamaProvider:
    """Return a provider that sends its requests to the Ollama server through `http`."""
    return OllamaProvider(openai_client=_raw_client(OllamaProvider(http_client=http).client, http))


def _raw_client(default: AsyncOpenAI, http: httpx2.AsyncClient) -> "RawMessagesClient":
    return RawMessagesClient(base_url=default.base_url, api_key=default.api_key, http_client=http)


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
        """Send the request. Send it again without what the server rejects: any of REPLACED_FIELDS,
        or the system messages, which then become a part of the first user message.

        What was rejected is left out of later requests if the server accepts the request without
        it. Otherwise there was another reason: some servers quote the request in an error.
        """
        body = {"messages": list(messages)} | dict(extra_body or {})
        fields = {name: it for name, it in params.items() if not isinstance(it, Omit)}
        url = self._client.base_url
        if "max_completion_tokens" in fields and not f".{url.host}".endswith(NEW_LIMIT_HOSTS):
            fields["max_tokens"] = fields.pop("max_completion_tokens")
        names = ("model", "reasoning_effort")
        model, effort = (str((fields | body).get(name))[:MAX_KEY_CHARS] for name in names)
        key = (str(url), model, effort)
        known = _rejected.get(key, frozenset())
        while True:
            sent, sent_body = _without(fields, known), _without(body, known)
            try:
                response = await super().create(messages=[], extra_body=sent_body, **sent)
            except (BadRequestError, UnprocessableEntityError, InternalServerError) as error:
                found = _found(str(error.body)[:MAX_ERROR_CHARS], {**sent, **sent_body}) - known
                # A limit that is rejected under both names is an error.
                if not found or any(REPLACED_FIELDS.get(name) in known for name in found):
                    raise
                known |= found
            else:
                if known:
                    _remember(key, known)
                return response


def _remember(key: tuple[str, str, str], rejected: frozenset[str]) -> None:
    _rejected.pop(key, None)
    _rejected[key] = rejected
    if len(_rejected) > MAX_REJECTED:
        del _rejected[next(iter(_rejected))]


def _found(error: str, sent: Mapping[str, Any]) -> set[str]:
    """Return the parts of the request that an error names as rejected."""
    found = {it for it in REPLACED_FIELDS if it in sent and it in error}
    found = found if _UNKNOWN_FIELD.search(error) else set()
    # If other fields are named, a limit does not count: it may just be quoted, and servers may
    # ignore its other name.
    found = found - LIMITS.keys() or found
    return {*found, SYSTEM_ROLES[0]} if _NO_SYSTEM.search(error) else found


def _without(fields: Mapping[str, Any], rejected: Iterable[str]) -> dict[str, Any]:
    """Return `fields`, with those in `rejected` replaced or left out."""
    sent = dict(fields)
    for name in rejected:
        if name in SYSTEM_ROLES:
            if "messages" in sent:
                sent["messages"] = _without_system(sent["messages"])
        elif (value := sent.pop(name, None)) is not None and REPLACED_FIELDS[name]:
            sent[REPLACED_FIELDS[name]] = value
    return sent


def _without_system(messages: list[Any]) -> list[Any]:
    """Return the messages with the system messages as the beginning of the first user message."""
    system = [it["content"] for it in messages if it["role"] in SYSTEM_ROLES]
    others = [it for it in messages if it["role"] not in SYSTEM_ROLES]
    first = next((place for place, it in enumerate(others) if it["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": "\n\n".join(system)}, *others]
    content = others[first]["content"]
    if isinstance(content, str):
        content = "\n\n".join([*system, content])
    else:
        content = [*({"type": "text", "text": text} for text in system), *content]
    others[first] = others[first] | {"content": content}
    return others


class CompatibleModel(OpenAIChatModel):
    """A model on a server of OpenAI's API, with the streams of `CompatibleStream`."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return CompatibleStream


class CompatibleStream(OpenAIStreamedResponse):
    """A stream in which the last reported usage counts, and each tool call has its own number.

    Google's API reports the tokens so far in each event, which pydantic-ai would add up. It also
    numbers all tool calls with 0, which pydantic-ai would join to one call. Raises
    `UnexpectedModelBehavior` after MAX_TOOL_CALLS calls or MAX_ARGUMENT_CHARS characters.
    """

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        usage, last = None, None
        # By the number that the server sent: the id of the latest such call, and its new number.
        calls: dict[int, tuple[str, int]] = {}
        numbers, chars = iter(range(MAX_TOOL_CALLS)), 0
        async for chunk in self._response:
            usage, last = chunk.usage or usage, chunk
            chunk.usage = None
            for choice in chunk.choices or ():
                try:
                    chars += _number_calls(choice.delta, calls, numbers)
                except StopIteration as error:
                    raise UnexpectedModelBehavior("The reply has too many tool calls.") from error
            if chars > MAX_ARGUMENT_CHARS:
                raise UnexpectedModelBehavior("The arguments of tool calls are too long.")
            yield chunk
        if last is not None and usage is not None and _is_counted(usage):
            yield last.model_copy(update={"choices": [], "usage": usage})


def _number_calls(
    delta: ChoiceDelta | None, calls: dict[int, tuple[str, int]], numbers: Iterator[int]
) -> int:
    """Replace the numbers of tool calls. A call begins with an id and a name.

    Return the number of characters of arguments. Raises `StopIteration` if `numbers` ends.
    """
    chars = 0
    for call in (delta and delta.tool_calls) or ():
        name = call.function.name if call.function else None
        known = calls.get(call.index)
        if known is None or (name and call.id and call.id != known[0]):
            known = calls[call.index] = (call.id or "", next(numbers))
        # Older versions of vLLM send another id with each part of a call.
        call.id, call.index = known[0] or call.id, known[1]
        chars += len((call.function and call.function.arguments) or "")
    return chars


def _is_counted(usage: CompletionUsage) -> bool:
    """Return False if a number is missing, or if both are 0, as in servers that do not count."""
    numbers = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    return None not in numbers and any(numbers)
