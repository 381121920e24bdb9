"""What speaks to servers of OpenAI's chat completions."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import httpx2
from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.types.chat import ChatCompletionMessageParam
from pydantic_ai.providers.openai import OpenAIProvider

from chat.providers.pieces import in_pieces

# Those of pydantic-ai's own clients.
TIMEOUT = httpx2.Timeout(600, connect=5)
LIMITS = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)
# What the SDK wants to have, and servers at home do not ask for.
NO_KEY = "none"


def plain(base_url: str | None) -> OpenAIProvider:
    """pydantic-ai's own provider. Without `base_url`, of the server and the key that the
    environment tells; raises UserError where it tells no key.
    """
    return OpenAIProvider(base_url=base_url, api_key=base_url and NO_KEY)


def quick(base_url: str | None) -> OpenAIProvider:
    """The same for many streams at a time in the event loop that runs."""
    http = httpx2.AsyncClient(timeout=TIMEOUT, limits=LIMITS, event_hooks={"response": [in_pieces]})
    known = OpenAIProvider(base_url=base_url, api_key=base_url and NO_KEY, http_client=http).client
    return OpenAIProvider(
        openai_client=Client(base_url=known.base_url, api_key=known.api_key, http_client=http)
    )


class Client(AsyncOpenAI):
    """The SDK's, but messages are sent as they are.

    The SDK goes through each message once for each kind of message that there is, looking for keys
    to rename and files to read, of which chat completions know none: 0.3 ms for each, in which
    nobody else is served.
    """

    @cached_property
    def chat(self) -> AsyncChat:
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(  # type: ignore[override]
        self,
        *,
        messages: Iterable[ChatCompletionMessageParam],
        extra_body: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> Any:
        body = {"messages": list(messages)} | dict(extra_body or {})
        return await super().create(messages=[], extra_body=body, **told)
