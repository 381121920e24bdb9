"""What a program asks of a reply, in pydantic-ai's form."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop as _
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from chat.options import Options
from chat.providers.base import ProviderError, Shape

Wire = Mapping[str, Any]

NO_JSON = _("This model cannot be held to plain JSON. Ask for a json_schema, or in words.")


def asked(model: Model, options: Options) -> tuple[ModelSettings, ModelRequestParameters]:
    """`options` for `model`. Raises ProviderError for what it cannot be asked.

    A server that speaks OpenAI's protocol gets `options.wire` as it came: pydantic-ai would drop
    words from schemas that other servers understand.
    """
    settings = ModelSettings(**options.settings)  # type: ignore[typeddict-item]
    if isinstance(model, OpenAIChatModel):
        if options.wire:
            settings["extra_body"] = dict(options.wire)
        return settings, ModelRequestParameters()
    return settings | _settings(options.wire), _parameters(options.wire)


def _settings(wire: Wire) -> ModelSettings:
    found = ModelSettings()
    if "parallel_tool_calls" in wire:
        found["parallel_tool_calls"] = wire["parallel_tool_calls"]
    if "tool_choice" in wire:
        found["tool_choice"] = _choice(wire["tool_choice"])
    return found


def _choice(choice: Any) -> Any:
    """`auto`, `none` and `required` are called so everywhere; else the names of the tools."""
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools":
        return [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]]
    return [choice["function"]["name"]]


def _parameters(wire: Wire) -> ModelRequestParameters:
    tools = [_tool(tool["function"]) for tool in wire.get("tools", ())]
    form = wire.get("response_format", {"type": "text"})
    if form["type"] == "text":
        return ModelRequestParameters(function_tools=tools)
    if form["type"] != "json_schema":
        raise ProviderError(NO_JSON, status=400)
    told = form["json_schema"]
    shape = Shape(told["name"], told.get("schema", {"type": "object"}))
    return shaped(shape, told.get("strict"), tools)


def _tool(function: Wire) -> ToolDefinition:
    return ToolDefinition(
        name=function["name"],
        description=function.get("description"),
        parameters_json_schema=function.get("parameters") or {"type": "object", "properties": {}},
        strict=function.get("strict"),
    )


def shaped(
    shape: Shape, strict: bool | None = True, tools: list[ToolDefinition] | None = None
) -> ModelRequestParameters:
    """An answer held to a schema, from a model that can be."""
    output = OutputObjectDefinition(json_schema=dict(shape.schema), name=shape.name, strict=strict)
    return ModelRequestParameters(
        function_tools=tools or [], output_mode="native", output_object=output
    )
