"""HTTP clients for servers of OpenAI's chat completions API."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import httpx2
from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletionMessageParam
from pydantic_ai.providers.openai import OpenAIProvider

from chat.providers.sse_batching import batch_events

# As in pydantic-ai's own clients.
TIMEOUT = httpx2.Timeout(600, connect=5)
LIMITS = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)
# The SDK demands a key; self-hosted servers do not check it.
NO_KEY = "none"


def simple_provider(base_url: str | None) -> OpenAIProvider:
    """Return pydantic-ai's own provider.

    Without `base_url`, the environment names the server and the key; raises `UserError` if it
    names no key.
    """
    return OpenAIProvider(base_url=base_url, api_key=base_url and NO_KEY)


def streaming_provider(base_url: str | None) -> OpenAIProvider:
    """Return a provider for many concurrent streams in the running event loop."""
    http = httpx2.AsyncClient(
        timeout=TIMEOUT, limits=LIMITS, event_hooks={"response": [batch_events]}
    )
    default = OpenAIProvider(
        base_url=base_url, api_key=base_url and NO_KEY, http_client=http
    ).client
    client = RawMessagesClient(base_url=default.base_url, api_key=default.api_key, http_client=http)
    return OpenAIProvider(openai_client=client)


class RawMessagesClient(AsyncOpenAI):
    """The SDK's client, except that it sends messages without transforming them.

    The SDK checks each message against every kind of message there is, for keys to rename and files
    to read. Chat completions have neither. The check takes 0.3 ms per message and blocks the event
    loop.
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
        body = {"messages": list(messages)} | dict(extra_body or {})
        return await super().create(messages=[], extra_body=body, **params)
