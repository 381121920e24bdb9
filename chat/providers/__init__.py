"""Model providers. `get_provider` returns the one behind a model name."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat import metrics
from chat.prompt.types import PromptMessage
from chat.providers.base import (
    Completion,
    Delta,
    Failed,
    Finished,
    OutputSchema,
    OutputSchemaRejectedError,
    Provider,
    ProviderError,
    ReplyOptions,
)

__all__ = [
    "Completion",
    "Delta",
    "Failed",
    "Finished",
    "OutputSchema",
    "OutputSchemaRejectedError",
    "Provider",
    "ProviderError",
    "ReplyOptions",
    "accepts_own_tools",
    "get_provider",
    "supports_images",
    "supports_output_schema",
    "supports_tools",
]

DEMO_NOT_RUNNING = _(
    "The demo model is not running. Start Strata with `make run`, or choose another chat model."
)

# Importing pydantic-ai takes most of a second. Commands that call no model must not pay for it,
# so the functions below import it.


class MeasuredProvider:
    """A provider that records metrics of its calls; `kind` is a label of the metrics."""

    def __init__(self, provider: Provider, model: str, kind: str) -> None:
        self.provider, self.model, self.kind = provider, model, kind

    async def stream(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions = ReplyOptions()
    ) -> AsyncIterator[Delta | Finished]:
        with metrics.measure_call(self.model, self.kind) as call:
            # The provider's stream is a generator, which must be closed together with this one.
            stream: Any = self.provider.stream(prompt, options)
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        call.record_success(event)
                    else:
                        call.record_chunk()
                    yield event

    def complete(
        self, prompt: Sequence[PromptMessage], max_tokens: int, schema: OutputSchema | None = None
    ) -> Completion:
        with metrics.measure_call(self.model, self.kind) as call:
            completion = self.provider.complete(prompt, max_tokens, schema)
            call.record_success(completion.finished)
            return completion


def get_provider(name: str, kind: str) -> Provider:
    """Return the provider of the model `name`. `kind` labels its calls in the metrics.

    Raises `ProviderError` if the provider is not available. Call it in a thread: the first call of
    a process imports pydantic-ai, which would block an event loop for most of a second.
    """
    from chat.providers.pydantic_ai import PydanticAIProvider

    base_url = first_token_timeout = None
    if name == "demo":
        if not settings.DEMO_MODEL_URL:
            raise ProviderError(DEMO_NOT_RUNNING, status=503)
        base_url = f"{settings.DEMO_MODEL_URL}/v1"
        first_token_timeout = settings.DEMO_FIRST_TOKEN_TIMEOUT
    return MeasuredProvider(PydanticAIProvider(name, base_url, first_token_timeout), name, kind)


# The demo model has no vision. It is too small to call a tool or to fill in a schema, although its
# server supports both.


def supports_images(name: str) -> bool:
    """Return False if the model `name` is known to accept no images."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_images(name)


def supports_tools(name: str) -> bool:
    """Return False if the model `name` is known to call no tools."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_tools(name)


def accepts_own_tools(name: str) -> bool:
    """Return True if Strata may offer the model `name` tools of its own."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.accepts_own_tools(name)


def supports_output_schema(name: str) -> bool:
    """Return True if the model `name` is known to accept a schema of its output."""
    from chat.providers import pydantic_ai

    return name != "demo" and pydantic_ai.supports_output_schema(name)
