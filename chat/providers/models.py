"""Any model that pydantic-ai knows, and any server that speaks OpenAI's chat completions."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from weakref import WeakKeyDictionary

from django.conf import settings
from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from chat.prompt import Said
from chat.providers.base import Completion, Delta, Finished, ProviderError

# A model holds connections that belong to one event loop.
_models: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Model]]
_models = WeakKeyDictionary()


class ModelProvider:
    def __init__(self, name: str, base_url: str | None = None) -> None:
        self.name = name
        self.base_url = base_url

    async def stream(self, said: Sequence[Said]) -> AsyncIterator[Delta | Finished]:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT,
            first_event_timeout=settings.MODEL_FIRST_TOKEN_TIMEOUT,
            max_retries=0,
        )
        spoke = False
        try:
            request = model_request_stream(self._model(), _wire(said), model_settings=limits)
            async with request as response:
                async for event in response:
                    if text := _text_of(event):
                        spoke = True
                        yield Delta(text)
                whole = response.get()
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise explain(error) from error
        if not spoke:
            raise ProviderError("The model returned nothing.")
        yield _finished(self.name, whole)

    def complete(self, said: Sequence[Said], max_tokens: int) -> Completion:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT, max_tokens=max_tokens, max_retries=0
        )
        try:
            whole = asyncio.run(self._complete(said, limits))
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise explain(error) from error
        if not (whole.text or "").strip():
            raise ProviderError("The model returned nothing.")
        return Completion(whole.text or "", _finished(self.name, whole))

    async def _complete(self, said: Sequence[Said], limits: ModelSettings):
        async with self._model() as model:
            return await model_request(model, _wire(said), model_settings=limits)

    def _model(self) -> Model:
        """The model, made once for each event loop."""
        known = _models.setdefault(asyncio.get_running_loop(), {})
        key = (self.name, self.base_url)
        if key not in known:
            if self.base_url is None:
                known[key] = infer_model(self.name)
            else:
                provider = OpenAIProvider(base_url=self.base_url, api_key="none")
                known[key] = OpenAIChatModel(self.name, provider=provider)
        return known[key]


def _wire(said: Sequence[Said]) -> list[messages.ModelMessage]:
    """The messages in pydantic-ai's form: requests and responses by turns."""
    wire: list[messages.ModelMessage] = []
    for one in said:
        if one.role == "assistant":
            wire.append(messages.ModelResponse(parts=[messages.TextPart(one.text)]))
            continue
        part = (
            messages.SystemPromptPart(one.text)
            if one.role == "system"
            else messages.UserPromptPart(one.text)
        )
        wire.append(messages.ModelRequest(parts=[part]))
    return wire


def _text_of(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.TextPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(
        event.delta, messages.TextPartDelta
    ):
        return event.delta.content_delta
    return ""


def _finished(name: str, whole: messages.ModelResponse) -> Finished:
    return Finished(
        model=whole.model_name or name,
        input_tokens=whole.usage.input_tokens,
        output_tokens=whole.usage.output_tokens,
        cost=_cost(whole),
        cut_off=whole.finish_reason == "length",
    )


def _cost(whole: messages.ModelResponse) -> Decimal | None:
    """The price of a call, None for a model whose price is not known (a local one, say)."""
    try:
        return whole.cost().total_price
    except (LookupError, AssertionError):
        return None


def explain(error: exceptions.AgentRunError | exceptions.UserError) -> ProviderError:
    """The failure in words for the reader of a chat; what the provider wrote stays in the log."""
    wait = getattr(error, "retry_after", None)
    if isinstance(error, exceptions.ModelRateLimitError):
        after = f" It asks for {wait:.0f} seconds of patience." if wait else ""
        return ProviderError(f"The model's provider takes no more requests just now.{after}", wait)
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return ProviderError(reason, wait)
    return ProviderError("The model's answer could not be read.", wait)


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.UserError, "The model is not configured: its name or its key is missing."),
    (exceptions.ModelQuotaExceededError, "The account with the model's provider is used up."),
    (exceptions.ModelRequestTimeout, "The model did not answer in time."),
    (exceptions.ModelTimeoutError, "The model did not answer in time."),
    (exceptions.ModelConnectionError, "The connection to the model broke or could not be made."),
    (exceptions.ModelAuthenticationError, "The model's provider refused the key."),
    (exceptions.ModelNotFoundError, "The model's provider does not know this model."),
    (exceptions.ModelContextWindowExceededError, "The prompt is longer than the model can read."),
    (exceptions.ModelRequestRejectedError, "The model's provider refused the request."),
    (exceptions.ModelOverloadedError, "The model's provider is overloaded."),
    (exceptions.ModelUnavailableError, "The model's provider is not available just now."),
    (exceptions.ModelServerError, "The model's provider failed with an error of its own."),
    (exceptions.ContentFilterError, "The model's provider withheld the answer."),
)
