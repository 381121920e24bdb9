"""Model providers. `get_provider` returns the provider of a model."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat import metrics
from chat.prompt.types import PromptMessage
from chat.providers.base import (
    Completion,
    Delta,
    Failed,
    Finished,
    ModelServer,
    OutputSchema,
    OutputSchemaRejectedError,
    Provider,
    ProviderError,
    ReplyOptions,
    Thought,
)
from projects.core import token_counting
from projects.core.database import in_thread

if TYPE_CHECKING:
    from chat.models import ModelProvider
    from chat.providers.booking import Booking, CallAccount
    from projects.models import Project

# The base URL of each provider's API: for Anthropic the Messages API, for all others an API like
# OpenAI's chat completions.
ADDRESSES = {
    "openai-chat": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "openrouter": "https://openrouter.ai/api/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
}
# Providers whose pydantic-ai client needs packages that Strata does not install.
_WITHOUT_CLIENT = {"google", "mistral", "groq"}
# A placeholder, because the SDK requires a key even for self-hosted servers that do not check it.
NO_KEY = "none"
# The maximum time until a change on the Models page reaches all processes.
CACHE_S = 5.0
DEMO_NOT_RUNNING = _(
    "The demo model is not running. Start Strata with `make run`, or choose another chat model."
)
UNREADABLE_KEY = _(
    "The key of this provider can no longer be read, because the server’s secret key has changed. "
    "A server administrator can enter it again on the Models page."
)
NOT_ALLOWED = _(
    "This project may not use this model. Choose another one in the chat or in the project’s "
    "settings."
)

# Importing pydantic-ai takes most of a second. Therefore it is imported by the functions below, so
# that commands that call no model do not wait for it.


class MeasuredProvider:
    """Wraps a provider, books the cost of its calls on `account`, and records metrics. Without an
    account, nothing is booked. `kind` is a label of the metrics.
    """

    def __init__(
        self, provider: Provider, model: str, kind: str, account: "CallAccount | None" = None
    ) -> None:
        self.provider, self.model, self.kind, self.account = provider, model, kind, account

    async def stream(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions = ReplyOptions()
    ) -> AsyncIterator[Delta | Thought | Finished]:
        pieces: list[str] = []
        booking, options = await self._begin_stream(prompt, options)
        measured = metrics.measure_call(self.model, self.kind)
        with measured as call, self._booked(call, booking, prompt, pieces) as book:
            # The provider's stream is a generator. It must be closed together with this generator.
            stream: Any = self.provider.stream(prompt, options)
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        book(event)
                        call.record_success(event)
                    else:
                        if isinstance(event, Delta):
                            call.record_chunk()
                        # Also for `Thought`, because reasoning costs money too.
                        pieces.append(event.text)
                    yield event

    def complete(
        self, prompt: Sequence[PromptMessage], max_tokens: int, schema: OutputSchema | None = None
    ) -> Completion:
        booking = None
        if self.account is not None and self.account.limits:
            booking = self.account.reserve(self.model, prompt, max_tokens)
            max_tokens = booking.max_output or max_tokens
        elif self.account is not None:
            booking = self.account.begin(self.model)
        measured = metrics.measure_call(self.model, self.kind)
        with measured as call, self._booked(call, booking, prompt) as book:
            completion = self.provider.complete(prompt, max_tokens, schema)
            book(completion.finished)
            call.record_success(completion.finished)
            return completion

    async def _begin_stream(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions
    ) -> "tuple[Booking | None, ReplyOptions]":
        """Begin the booking of a stream. Return it and the options. If a limit applies, the options
        contain the maximum number of tokens that the model may write. Raises `SpendingLimitError`.
        """
        if self.account is None:
            return None, options
        if not self.account.limits:
            return self.account.begin(self.model), options
        from chat.prompt.builder import REPLY_SHARE, context_tokens

        default = int(context_tokens(self.model) * REPLY_SHARE)
        max_output = options.settings.get("max_tokens") or default
        declared = [*options.own_tools, *options.openai_params.get("tools", ())]
        tool_tokens = token_counting.count(json.dumps(declared)) if declared else 0
        reserving = asyncio.create_task(
            in_thread(self.account.reserve, self.model, prompt, max_output, tool_tokens)
        )
        try:
            booking = await asyncio.shield(reserving)
        except asyncio.CancelledError as error:
            # The thread continues, and the reservation must be released.
            with suppress(ProviderError):
                (await reserving).fail(error, ())
            raise
        return booking, replace(
            options, settings={**options.settings, "max_tokens": booking.max_output}
        )

    @contextmanager
    def _booked(
        self,
        measured: metrics.CallMetrics,
        booking: "Booking | None",
        prompt: Sequence[PromptMessage],
        pieces: Sequence[str] = (),
    ) -> Iterator[Callable[[Finished], None]]:
        """Book the call that the block makes. The block passes `Finished` to the yielded function.
        `pieces` is the text so far.
        """
        is_open = True

        def book(finished: Finished) -> None:
            nonlocal is_open
            if booking is not None:
                booking.succeed(finished)
            is_open = False

        try:
            yield book
        except BaseException as error:
            if booking is not None and is_open:
                booking.fail(error, prompt, "".join(pieces))
                usage = booking.call
                measured.record_usage(usage.input_tokens, usage.output_tokens, usage.cost)
            raise


def get_provider(name: str, kind: str, account: "CallAccount | None" = None) -> Provider:
    """Return the provider of the model `name`. Its calls are booked on `account`. `kind` is a label
    of their metrics.

    Raises `ProviderError` if the provider is not available. This function may read the database,
    and its first call in a process imports pydantic-ai, which would block an event loop for most of
    a second. Therefore use `in_thread` in async code.
    """
    from chat.providers import prices
    from chat.providers.pydantic_ai import PydanticAIProvider

    prices.load()
    if account is not None:
        account.find_limits()
    return MeasuredProvider(PydanticAIProvider(name, server_of(name)), name, kind, account)


def require_allowed(project: "Project", name: str) -> None:
    """Raise `ProviderError` if administrators do not allow the project to call the model `name`."""
    if not project.allows_model(name):
        raise ProviderError(NOT_ALLOWED, status=400, code="model_not_allowed")


_saved: tuple[float, dict[str, ModelServer | None]] = (0.0, {})


def server_of(model_name: str) -> ModelServer | None:
    """Return the server of a model; None if pydantic-ai itself determines address and key.

    The environment takes precedence over the Models page. Raises `ProviderError` if a saved key
    cannot be decrypted, or if the demo model is not running.
    """
    if model_name == "demo":
        if not settings.DEMO_MODEL_URL:
            raise ProviderError(DEMO_NOT_RUNNING, status=503)
        timeout = settings.DEMO_FIRST_TOKEN_TIMEOUT
        address = f"{settings.DEMO_MODEL_URL}/v1"
        return ModelServer("demo", address, NO_KEY, first_token_timeout=timeout)
    prefix = model_name.partition(":")[0]
    prefix = "openai-chat" if prefix == "openai" else prefix
    if is_in_environment(prefix):
        if prefix not in _WITHOUT_CLIENT:
            return None
        return ModelServer(prefix, ADDRESSES[prefix], settings.MODEL_SECRETS[prefix])
    servers = _saved_servers()
    if prefix in servers and servers[prefix] is None:
        raise ProviderError(UNREADABLE_KEY, status=503)
    return servers.get(prefix)


def is_in_environment(prefix: str) -> bool:
    """Return whether the environment has the provider's key or, for `openai-chat`, a server's
    address.
    """
    return prefix in settings.MODEL_KEYS or prefix == "openai-chat" and bool(settings.OPENAI_URL)


def environment_servers() -> dict[str, ModelServer]:
    """Return, by provider, the servers whose key or address is in the environment."""
    names = [name for name in ADDRESSES if is_in_environment(name)]
    addresses = ADDRESSES
    if settings.OPENAI_URL:
        addresses = ADDRESSES | {"openai-chat": settings.OPENAI_URL}
    keys = settings.MODEL_SECRETS
    return {name: ModelServer(name, addresses[name], keys.get(name, NO_KEY)) for name in names}


def clear_provider_cache() -> None:
    """Clear the cache, so that this process reads the providers again at the next call."""
    global _saved
    _saved = (0.0, {})


def _saved_servers() -> dict[str, ModelServer | None]:
    global _saved
    read_at, servers = _saved
    if not read_at or time.monotonic() - read_at > CACHE_S:
        from chat.models import ModelProvider

        rows = ModelProvider.objects.exclude(encrypted_key="")
        servers = {row.name: row.key and saved_server(row, row.key) or None for row in rows}
        _saved = (time.monotonic(), servers)
    return servers


def saved_server(provider: "ModelProvider", key: str) -> ModelServer:
    is_own = provider.kind == "compatible"
    address = provider.address or ADDRESSES[provider.kind]
    return ModelServer(provider.kind, address, key, is_guarded=is_own)


# The demo model has no vision. It is too small for tools and schemas, although its server supports
# them.


def supports_images(name: str) -> bool:
    """Return False if the model `name` is known to accept no images."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_images(name)


def supports_tools(name: str) -> bool:
    """Return False if the model `name` is known not to support tools."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_tools(name)


def accepts_own_tools(name: str) -> bool:
    """Return True if Strata may offer its own tools to the model `name`."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.accepts_own_tools(name)


def supports_output_schema(name: str) -> bool:
    """Return True if the model `name` is known to support output schemas."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_output_schema(name)
