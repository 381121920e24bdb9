"""Converts a prompt and `ReplyOptions` to pydantic-ai's messages, settings and parameters."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions, messages
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from chat import attachments
from chat.prompt.types import PromptMessage
from chat.providers.base import OutputSchema, ProviderError, ReplyOptions
from chat.providers.errors import kind_of

ImageData = Mapping[UUID, bytes]
OpenAIParams = Mapping[str, Any]

NO_JSON_MODE = _(
    "This model does not support JSON mode. Send a json_schema, or ask for JSON in the prompt."
)


async def load_images(prompt: Sequence[PromptMessage]) -> ImageData:
    """Return the bytes of all images of `prompt`. They are read in a thread."""
    images = [image for message in prompt for image in message.images]
    return await asyncio.to_thread(attachments.read_images, images) if images else {}


def to_model_messages(
    prompt: Sequence[PromptMessage], images: ImageData
) -> list[messages.ModelMessage]:
    """Return the messages in pydantic-ai's form, alternating requests and responses.

    An image that is not in `images` is replaced by its description.
    """
    tool_names = {call.id: call.name for message in prompt for call in message.calls}
    result: list[messages.ModelMessage] = []
    for is_tool_result, group in groupby(prompt, key=lambda message: bool(message.tool_call_id)):
        if is_tool_result:
            # Some providers require all tool results of a reply in a single request.
            parts = [
                messages.ToolReturnPart(
                    tool_name=tool_names.get(message.tool_call_id, ""),
                    content=message.text,
                    tool_call_id=message.tool_call_id,
                )
                for message in group
            ]
            result.append(messages.ModelRequest(parts=parts))
        else:
            result += [_to_model_message(message, images) for message in group]
    return result


class VerbatimToolCallPart(messages.ToolCallPart):
    """A tool call whose arguments are sent back exactly as the model wrote them."""

    def args_as_json_str(self) -> str:
        if isinstance(self.args, str) and self.args:
            return self.args
        return super().args_as_json_str()


def _to_model_message(message: PromptMessage, images: ImageData) -> messages.ModelMessage:
    if message.native is not None:
        return message.native
    if message.role == "assistant":
        text = [messages.TextPart(message.text)] if message.text or not message.calls else []
        calls = [VerbatimToolCallPart(it.name, it.arguments, it.id) for it in message.calls]
        return messages.ModelResponse(parts=[*text, *calls])
    if message.role == "system":
        return messages.ModelRequest(parts=[messages.SystemPromptPart(message.text)])
    return messages.ModelRequest(parts=[messages.UserPromptPart(_user_content(message, images))])


def _user_content(message: PromptMessage, images: ImageData) -> str | list[messages.UserContent]:
    """Return first the images and then the text. Models answer best in this order.

    https://docs.claude.com/en/docs/build-with-claude/vision
    """
    sent = [image for image in message.images if image.id in images]
    described = tuple(image for image in message.images if image.id not in images)
    text = replace(message, images=described).plain_text
    if not sent:
        return text
    parts = [messages.BinaryContent(images[it.id], media_type=it.media_type) for it in sent]
    return [*parts, text] if text else [*parts]


def may_reject_images(error: exceptions.ModelAPIError) -> bool:
    """Return True if the request may have been rejected because of its images. Servers report this
    in different ways.
    """
    if isinstance(error, exceptions.ModelHTTPError) and "image" in str(error.body).lower():
        return True
    return is_content_rejected(error)


def may_reject_tools(error: exceptions.ModelAPIError) -> bool:
    """Return True if the request may have been rejected because it offers tools. Servers report
    this with different statuses.
    """
    body = str(error.body).lower() if isinstance(error, exceptions.ModelHTTPError) else ""
    return "tool" in body or "function call" in body


def is_content_rejected(error: Exception) -> bool:
    """Return True if a request was rejected for its content, not for its key, model or length."""
    other = (
        exceptions.ModelAuthenticationError,
        exceptions.ModelNotFoundError,
        exceptions.ModelContextWindowExceededError,
    )
    kind = kind_of(error)
    return issubclass(kind, exceptions.ModelRequestRejectedError) and not issubclass(kind, other)


def to_model_settings(
    model: Model, options: ReplyOptions
) -> tuple[ModelSettings, ModelRequestParameters]:
    """Return `options` for `model`. Raises `ProviderError` if the model does not support an option.

    A server of OpenAI's API receives `options.openai_params` unchanged, because pydantic-ai would
    drop schema keywords that other servers support.
    """
    settings = ModelSettings(**options.settings)  # type: ignore[typeddict-item]
    params = dict(options.openai_params)
    if options.own_tools:
        params["tools"] = [*params.get("tools", ()), *options.own_tools]
    if isinstance(model, OpenAIChatModel):
        if params:
            settings["extra_body"] = params
        return settings, ModelRequestParameters()
    if "parallel_tool_calls" in params:
        settings["parallel_tool_calls"] = params["parallel_tool_calls"]
    if "tool_choice" in params:
        settings["tool_choice"] = _tool_choice(params["tool_choice"])
    return settings, _request_parameters(params)


def _tool_choice(choice: Any) -> Any:
    """Return `auto`, `none` or `required`, which all providers support, or the names of tools."""
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools":
        return [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]]
    return [choice["function"]["name"]]


def _request_parameters(params: OpenAIParams) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=function["name"],
            description=function.get("description"),
            parameters_json_schema=function.get("parameters")
            or {"type": "object", "properties": {}},
            strict=function.get("strict"),
        )
        for function in (tool["function"] for tool in params.get("tools", ()))
    ]
    response_format = params.get("response_format", {"type": "text"})
    if response_format["type"] == "text":
        return ModelRequestParameters(function_tools=tools)
    if response_format["type"] != "json_schema":
        raise ProviderError(NO_JSON_MODE, status=400)
    definition = response_format["json_schema"]
    schema = OutputSchema(definition["name"], definition.get("schema") or {"type": "object"})
    return schema_parameters(schema, definition.get("strict"), tools)


def schema_parameters(
    schema: OutputSchema, strict: bool | None = True, tools: list[ToolDefinition] | None = None
) -> ModelRequestParameters:
    """Return parameters that make a model answer according to `schema`."""
    output = OutputObjectDefinition(
        json_schema=dict(schema.schema), name=schema.name, strict=strict
    )
    return ModelRequestParameters(
        function_tools=tools or [], output_mode="native", output_object=output
    )
