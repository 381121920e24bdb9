"""Any model that pydantic-ai knows, and any server that speaks OpenAI's chat completions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from functools import cache
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from chat.prompt import Said
from chat.providers.base import (
    Completion,
    Delta,
    Finished,
    ProviderError,
    Shape,
    ShapeRefused,
)
from chat.providers.wire import Pictures, is_refused, may_be_blind, pictures_of, wire

log = logging.getLogger(__name__)

# A model holds connections that belong to one event loop.
_models: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Model]]
_models = WeakKeyDictionary()
# Models whose servers refused a schema, for as long as this process lives.
_shapeless: set[str] = set()


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
        spoke, unseen = False, 0
        pictures = await pictures_of(said)
        whole = None
        try:
            while whole is None:
                told = wire(said, pictures)
                request = model_request_stream(self._model(), told, model_settings=limits)
                try:
                    async with request as response:
                        async for event in response:
                            if text := _text_of(event):
                                spoke = spoke or not text.isspace()
                                yield Delta(text)
                        whole = response.get()
                except exceptions.ModelAPIError as error:
                    if spoke or not pictures or not may_be_blind(error):
                        raise
                    log.warning("images_refused model=%s cause=%r", self.name, error)
                    unseen, pictures = len(pictures), {}
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise explain(error) from error
        if not spoke:
            raise ProviderError(_("The model returned nothing."))
        yield _finished(self.name, whole, unseen)

    def complete(
        self, said: Sequence[Said], max_tokens: int, shape: Shape | None = None
    ) -> Completion:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT, max_tokens=max_tokens, max_retries=0
        )
        try:
            whole, unseen = asyncio.run(self._complete(said, limits, _parameters(shape)))
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            if shape is not None and is_refused(error):
                log.warning("shape_refused model=%s cause=%r", self.name, error)
                _shapeless.add(self.name)
                raise ShapeRefused("The model's provider takes no schema.") from error
            raise explain(error) from error
        if not (whole.text or "").strip():
            raise ProviderError(_("The model returned nothing."))
        return Completion(whole.text or "", _finished(self.name, whole, unseen))

    async def _complete(
        self,
        said: Sequence[Said],
        limits: ModelSettings,
        parameters: ModelRequestParameters | None,
    ) -> tuple[messages.ModelResponse, int]:
        """The answer, and how many images the model refused to look at before."""
        pictures = await pictures_of(said)
        # Not that of `_model`: this event loop is at its end in a moment.
        async with self._made() as model:

            async def ask(pictures: Pictures) -> messages.ModelResponse:
                return await model_request(
                    model,
                    wire(said, pictures),
                    model_settings=limits,
                    model_request_parameters=parameters,
                )

            try:
                return await ask(pictures), 0
            except exceptions.ModelAPIError as error:
                if not pictures or not may_be_blind(error):
                    raise
                log.warning("images_refused model=%s cause=%r", self.name, error)
            return await ask({}), len(pictures)

    def _model(self) -> Model:
        """The model, made once for each event loop."""
        known = _models.setdefault(asyncio.get_running_loop(), {})
        key = (self.name, self.base_url)
        if key not in known:
            known[key] = self._made()
        return known[key]

    def _made(self) -> Model:
        if self.base_url is None:
            return _inferred(self.name)
        provider = OpenAIProvider(base_url=self.base_url, api_key="none")
        return OpenAIChatModel(self.name, provider=provider)


def _inferred(name: str) -> Model:
    """The model of that name. Raises ProviderError for a provider whose package is not there."""
    try:
        return infer_model(name)
    except ImportError as error:
        provider = name.partition(":")[0]
        raise ProviderError(
            f"The package for the provider “{provider}” is not installed."
        ) from error


@cache
def can_see(name: str) -> bool:
    """False for a model of which pydantic-ai knows that it takes no images."""
    try:
        model = infer_model(name)
    except (exceptions.UserError, ImportError):
        # It will not answer either, and says why then.
        return True
    return bool(model.profile.get("supports_image_input", True))


@cache
def _knows_schemas(name: str) -> bool:
    try:
        model = infer_model(name)
    except (exceptions.UserError, ImportError):
        return False
    return bool(model.profile.get("supports_json_schema_output", False))


def can_shape(name: str) -> bool:
    """Whether pydantic-ai knows of the model that it can be held to a schema, and its server did
    not refuse one.
    """
    return name not in _shapeless and _knows_schemas(name)


def _parameters(shape: Shape | None) -> ModelRequestParameters | None:
    if shape is None:
        return None
    output = OutputObjectDefinition(json_schema=dict(shape.schema), name=shape.name, strict=True)
    return ModelRequestParameters(output_mode="native", output_object=output)


def _text_of(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.TextPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(
        event.delta, messages.TextPartDelta
    ):
        return event.delta.content_delta
    return ""


def _finished(name: str, whole: messages.ModelResponse, unseen: int) -> Finished:
    return Finished(
        model=whole.model_name or name,
        input_tokens=whole.usage.input_tokens,
        output_tokens=whole.usage.output_tokens,
        cost=_cost(whole),
        cut_off=whole.finish_reason == "length",
        unseen=unseen,
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
        reason = _("The model's provider takes no more requests just now.")
        return ProviderError(reason + after, wait)
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return ProviderError(reason, wait)
    return ProviderError(_("The model's answer could not be read."), wait)


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.UserError, _("The model is not configured: its name or its key is missing.")),
    (exceptions.ModelQuotaExceededError, _("The account with the model's provider is used up.")),
    (exceptions.ModelRequestTimeout, _("The model did not answer in time.")),
    (exceptions.ModelTimeoutError, _("The model did not answer in time.")),
    (exceptions.ModelConnectionError, _("The connection to the model broke or could not be made.")),
    (exceptions.ModelAuthenticationError, _("The model's provider refused the key.")),
    (exceptions.ModelNotFoundError, _("The model's provider does not know this model.")),
    (
        exceptions.ModelContextWindowExceededError,
        _("The prompt is longer than the model can read."),
    ),
    (exceptions.ModelRequestRejectedError, _("The model's provider refused the request.")),
    (exceptions.ModelOverloadedError, _("The model's provider is overloaded.")),
    (exceptions.ModelUnavailableError, _("The model's provider is not available just now.")),
    (exceptions.ModelServerError, _("The model's provider failed with an error of its own.")),
    (exceptions.ContentFilterError, _("The model's provider withheld the answer.")),
)
