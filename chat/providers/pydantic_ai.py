"""The provider for every model that pydantic-ai supports, and every OpenAI-compatible server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
from django.conf import settings
from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.settings import ModelSettings

from chat.prompt.types import PromptMessage, ToolCall
from chat.providers import compatible, http_clients, prices
from chat.providers.base import (
    MAX_CALL_COST,
    MAX_CALL_TOKENS,
    Completion,
    Delta,
    Finished,
    ModelServer,
    OutputSchema,
    OutputSchemaRejectedError,
    ProviderError,
    ReplyOptions,
    Thought,
)
from chat.providers.errors import BLOCKED, to_provider_error
from chat.providers.http_clients import TextChannel, text_channel
from chat.providers.message_mapping import (
    ImageData,
    is_content_rejected,
    load_images,
    may_reject_images,
    may_reject_tools,
    schema_parameters,
    to_model_messages,
    to_model_settings,
)
from projects.core import token_counting
from projects.core.text import storable

log = logging.getLogger(__name__)

# pydantic-ai's providers that use the server at OPENAI_BASE_URL.
OPENAI_PREFIXES = ("openai", "openai-chat")
NO_OUTPUT = _("The model sent an empty reply.")
ONLY_REASONING = _("The model reached its token limit before it began to reply.")

# The models of each event loop. Event loops do not share models, because a connection belongs to
# one event loop.
_models: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, ModelServer | None], Model]]
_models = WeakKeyDictionary()
# Models whose servers rejected an output schema. Kept until this process ends.
_without_schemas: set[str] = set()
# Models whose servers rejected Strata's own tools. Kept until this process ends.
_without_tools: set[str] = set()


class PydanticAIProvider:
    def __init__(self, name: str, server: ModelServer | None = None) -> None:
        self.name = name
        self.server = server
        timeout = server.first_token_timeout if server else None
        self.first_token_timeout = timeout or settings.MODEL_FIRST_TOKEN_TIMEOUT

    async def stream(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions = ReplyOptions()
    ) -> AsyncIterator[Delta | Thought | Finished]:
        channel = TextChannel()
        work = asyncio.create_task(self._answer(prompt, options, channel))
        try:
            async for piece in channel.read(work):
                yield piece
            yield await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _answer(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions, channel: TextChannel
    ) -> Finished:
        """Request the answer, pass its text to `channel`, and return the last event."""
        text_channel.set(channel)
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT,
            first_event_timeout=self.first_token_timeout,
            max_retries=0,
        )
        rejects_tools, unseen, response = False, 0, None
        images = await load_images(prompt)
        try:
            model = self._shared_model()
            while response is None:
                model_settings, parameters = to_model_settings(model, options)
                request = model_request_stream(
                    model,
                    to_model_messages(prompt, images),
                    model_settings=model_settings | limits,
                    model_request_parameters=parameters,
                )
                try:
                    async with request as stream:
                        async for event in stream:
                            if text := _text_of(event):
                                channel.add_interpreted(text)
                            elif thought := _thought_of(event):
                                channel.add_thought(thought)
                        response = stream.get()
                except exceptions.ModelAPIError as error:
                    if channel.has_text:
                        raise
                    # Do not drop the tools after a tool call: the call shows that the server
                    # supports them.
                    drops_tools = options.own_tools and not prompt[-1].tool_call_id
                    if drops_tools and may_reject_tools(error):
                        log.warning("tools_rejected model=%s", self.name)
                        options, rejects_tools = replace(options, own_tools=()), True
                    elif images and may_reject_images(error):
                        log.warning("images_rejected model=%s cause=%r", self.name, error)
                        unseen, images = len(images), {}
                    else:
                        raise
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise to_provider_error(error) from error
        finished = _finished(self.name, prompt, response, unseen)
        if not channel.has_text and not response.tool_calls:
            raise _no_output(finished)
        if rejects_tools:
            _without_tools.add(self.name)
        return finished

    def complete(
        self, prompt: Sequence[PromptMessage], max_tokens: int, schema: OutputSchema | None = None
    ) -> Completion:
        limits = ModelSettings(
            request_timeout=settings.MODEL_TIMEOUT, max_tokens=max_tokens, max_retries=0
        )
        try:
            parameters = None if schema is None else schema_parameters(schema)
            response, unseen = asyncio.run(self._request(prompt, limits, parameters))
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            if schema is not None and is_content_rejected(error):
                log.warning("response_format_rejected model=%s cause=%r", self.name, error)
                _without_schemas.add(self.name)
                raise OutputSchemaRejectedError("The model's provider takes no schema.") from error
            raise to_provider_error(error) from error
        finished = _finished(self.name, prompt, response, unseen)
        if not (response.text or "").strip():
            raise _no_output(finished)
        return Completion(response.text or "", finished)

    async def _request(
        self,
        prompt: Sequence[PromptMessage],
        limits: ModelSettings,
        parameters: ModelRequestParameters | None,
    ) -> tuple[messages.ModelResponse, int]:
        """Return the response, and how many images the model rejected in an earlier attempt."""
        images = await load_images(prompt)
        # A separate model, because this event loop ends after the request.
        async with self._new_http_client() as http, self._new_model(http) as model:

            async def request(images: ImageData) -> messages.ModelResponse:
                return await model_request(
                    model,
                    to_model_messages(prompt, images),
                    model_settings=limits,
                    model_request_parameters=parameters,
                )

            try:
                return await request(images), 0
            except exceptions.ModelAPIError as error:
                if not images or not may_reject_images(error):
                    raise
                log.warning("images_rejected model=%s cause=%r", self.name, error)
            return await request({}), len(images)

    def _shared_model(self) -> Model:
        """Return the model of the running event loop."""
        models = _models.setdefault(asyncio.get_running_loop(), {})
        key = (self.name, self.server)
        if key not in models:
            models[key] = self._new_model(self._new_http_client())
        return models[key]

    def _new_http_client(self) -> httpx2.AsyncClient:
        is_guarded = self.server is not None and self.server.is_guarded
        return http_clients.new_http_client(is_guarded)

    def _new_model(self, http: httpx2.AsyncClient) -> Model:
        """Return a model. It uses `http` if `server` is set, and for OpenAI and Ollama. Other
        models use pydantic-ai's own client.

        Raises `ProviderError` if the provider's package is not installed.
        """
        prefix, _colon, model_name = self.name.partition(":")
        server = self.server
        if server is not None and server.kind == "anthropic":
            # Imported on demand, because the SDK takes a third of a second to import.
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            provider = AnthropicProvider(
                api_key=server.key, base_url=server.address, http_client=http
            )
            return AnthropicModel(model_name, provider=provider)
        if server is not None:
            openai = compatible.openai_provider(server.address, http, server.key)
            return compatible.CompatibleModel(model_name or self.name, provider=openai)
        try:
            if prefix in OPENAI_PREFIXES:
                openai = compatible.openai_provider(None, http)
                model = infer_model(self.name, lambda _: openai)
                if type(model) is not OpenAIChatModel:
                    return model
                return compatible.CompatibleModel(model_name, provider=openai)
            if prefix == "ollama":
                return infer_model(self.name, lambda _: compatible.ollama_provider(http))
            return infer_model(self.name)
        except ImportError as error:
            raise ProviderError(
                f"The package for the provider “{prefix}” is not installed.", status=500
            ) from error


@cache
def _profile(name: str) -> Mapping[str, Any]:
    """Return pydantic-ai's profile of the model.

    The result is cached, because creating a model reads the certificates of the machine.
    """
    try:
        return infer_model(name).profile
    except (exceptions.UserError, ImportError):
        # The call of the model will fail with the reason.
        return {}


def supports_images(name: str) -> bool:
    """Return False if pydantic-ai's profile of the model excludes images."""
    return bool(_profile(name).get("supports_image_input", True))


def supports_tools(name: str) -> bool:
    """Return False if pydantic-ai's profile of the model excludes tools."""
    return bool(_profile(name).get("supports_tools", True))


def accepts_own_tools(name: str) -> bool:
    """Return True if the model supports tools and its server did not reject Strata's own tools."""
    return name not in _without_tools and supports_tools(name)


def supports_output_schema(name: str) -> bool:
    """Return True if pydantic-ai's profile of the model includes output schemas, and its server has
    not rejected a schema.
    """
    return name not in _without_schemas and bool(
        _profile(name).get("supports_json_schema_output", False)
    )


def _text_of(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.TextPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(
        event.delta, messages.TextPartDelta
    ):
        return event.delta.content_delta
    return ""


def _thought_of(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.ThinkingPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(
        event.delta, messages.ThinkingPartDelta
    ):
        return event.delta.content_delta or ""
    return ""


def _finished(
    name: str, prompt: Sequence[PromptMessage], response: messages.ModelResponse, unseen: int
) -> Finished:
    input_tokens, output_tokens = response.usage.input_tokens, response.usage.output_tokens
    if response.usage.unmeasured_requests:
        # Estimate the usage, because many self-hosted servers report none, mainly for streams.
        input_tokens = sum(message.tokens for message in prompt)
        output_tokens = token_counting.count(response.text or "")
    input_tokens, cached_tokens, output_tokens = (
        min(count, MAX_CALL_TOKENS)
        for count in (input_tokens, response.usage.cache_read_tokens, output_tokens)
    )
    price = prices.set_cost(name, input_tokens, cached_tokens, output_tokens)
    return Finished(
        model=response.model_name or name,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=_cost(response, price),
        cut_off=response.finish_reason == "length",
        filtered=response.finish_reason == "content_filter",
        unseen=unseen,
        calls=tuple(_tool_call(part) for part in response.tool_calls),
        native=response,
        cached_tokens=cached_tokens,
    )


def _no_output(finished: Finished) -> ProviderError:
    if finished.filtered:
        error = ProviderError(BLOCKED, status=400, code="content_filter")
    else:
        error = ProviderError(ONLY_REASONING if finished.cut_off else NO_OUTPUT)
    error.finished = finished
    return error


def _tool_call(part: messages.ToolCallPart) -> ToolCall:
    arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
    return ToolCall(storable(part.tool_call_id), storable(part.tool_name), storable(arguments))


def _cost(response: messages.ModelResponse, price: Decimal | None) -> Decimal | None:
    """Return the cost of the call. `price` is the cost by the prices that an administrator has set.
    If it is None, the listed prices are used. Return None if no price is known, if the listed price
    needs usage that was not reported, or if the cost is too high to store.
    """
    try:
        price = response.cost().total_price if price is None else price
        return price if price < MAX_CALL_COST else None
    except (LookupError, AssertionError, ValueError):
        return None
