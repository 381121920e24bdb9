"""Any model that pydantic-ai knows, and any server that speaks OpenAI's chat completions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from functools import cache
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from chat import tokens
from chat.options import Options
from chat.prompt import Said
from chat.providers import clients
from chat.providers.asking import asked, shaped
from chat.providers.base import (
    Completion,
    Delta,
    Finished,
    ProviderError,
    Shape,
    ShapeRefused,
)
from chat.providers.failures import explain
from chat.providers.wire import Pictures, is_refused, may_be_blind, pictures_of, wire
from chat.storable import storable
from chat.tooling import ToolCall

log = logging.getLogger(__name__)

# Providers of pydantic-ai's that OPENAI_BASE_URL may lead anywhere.
OPENAI = ("openai", "openai-chat")

# A model holds connections that belong to one event loop.
_models: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Model]]
_models = WeakKeyDictionary()
# Models whose servers refused a schema, for as long as this process lives.
_shapeless: set[str] = set()


class ModelProvider:
    def __init__(self, name: str, base_url: str | None = None) -> None:
        self.name = name
        self.base_url = base_url

    async def stream(
        self, said: Sequence[Said], options: Options = Options()
    ) -> AsyncIterator[Delta | Finished]:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT,
            first_event_timeout=settings.MODEL_FIRST_TOKEN_TIMEOUT,
            max_retries=0,
        )
        spoke, unseen = False, 0
        pictures = await pictures_of(said)
        whole = None
        try:
            model = self._model()
            wanted, parameters = asked(model, options)
            while whole is None:
                request = model_request_stream(
                    model,
                    wire(said, pictures),
                    model_settings=wanted | limits,
                    model_request_parameters=parameters,
                )
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
        if not spoke and not whole.tool_calls:
            raise ProviderError(_("The model returned nothing."))
        yield _finished(self.name, said, whole, unseen)

    def complete(
        self, said: Sequence[Said], max_tokens: int, shape: Shape | None = None
    ) -> Completion:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT, max_tokens=max_tokens, max_retries=0
        )
        try:
            parameters = None if shape is None else shaped(shape)
            whole, unseen = asyncio.run(self._complete(said, limits, parameters))
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            if shape is not None and is_refused(error):
                log.warning("shape_refused model=%s cause=%r", self.name, error)
                _shapeless.add(self.name)
                raise ShapeRefused("The model's provider takes no schema.") from error
            raise explain(error) from error
        if not (whole.text or "").strip():
            raise ProviderError(_("The model returned nothing."))
        return Completion(whole.text or "", _finished(self.name, said, whole, unseen))

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
            known[key] = self._made(clients.quick)
        return known[key]

    def _made(self, provider: Callable[[str | None], OpenAIProvider] = clients.plain) -> Model:
        """`provider` makes what speaks to servers of OpenAI's API; pydantic-ai does else."""
        if self.base_url is None:
            return _inferred(self.name, provider)
        return OpenAIChatModel(self.name, provider=provider(self.base_url))


def _inferred(name: str, provider: Callable[[str | None], OpenAIProvider]) -> Model:
    """The model of that name. Raises ProviderError for a provider whose package is not there."""
    try:
        if name.partition(":")[0] in OPENAI:
            return infer_model(name, lambda _: provider(None))
        return infer_model(name)
    except ImportError as error:
        missing = name.partition(":")[0]
        raise ProviderError(
            f"The package for the provider “{missing}” is not installed.", status=500
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
def can_call(name: str) -> bool:
    """False for a model of which pydantic-ai knows that it takes no tools."""
    try:
        model = infer_model(name)
    except (exceptions.UserError, ImportError):
        return True
    return bool(model.profile.get("supports_tools", True))


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


def _text_of(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.TextPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(
        event.delta, messages.TextPartDelta
    ):
        return event.delta.content_delta
    return ""


def _finished(
    name: str, said: Sequence[Said], whole: messages.ModelResponse, unseen: int
) -> Finished:
    heard, spoken = whole.usage.input_tokens, whole.usage.output_tokens
    if whole.usage.unmeasured_requests:
        # Many a server at home tells no usage, least of all of a stream.
        heard, spoken = sum(one.tokens for one in said), tokens.count(whole.text or "")
    return Finished(
        model=whole.model_name or name,
        input_tokens=heard,
        output_tokens=spoken,
        cost=_cost(whole),
        cut_off=whole.finish_reason == "length",
        unseen=unseen,
        calls=tuple(_call(part) for part in whole.tool_calls),
    )


def _call(part: messages.ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
    return ToolCall(part.tool_call_id, part.tool_name, storable(arguments))


def _cost(whole: messages.ModelResponse) -> Decimal | None:
    """The price of a call, None where it is not known: of a local model, say, or when its server
    told no usage.
    """
    try:
        return whole.cost().total_price
    except (LookupError, AssertionError, ValueError):
        return None
