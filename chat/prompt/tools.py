"""Strata's own tools: it runs them for a model that looks up what its prompt does not contain.

A tool is a function with the decorator `model_tool` that is listed in `settings.CHAT_MODEL_TOOLS`.
Its arguments are a Turn and the arguments of the call. It returns a ToolResult of at most
`turn.budget` tokens. Models read its docstring. Tools must not change anything, because a reply may
be generated again.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import from_json

from chat import providers
from chat.prompt.builder import Turn
from chat.prompt.types import PromptItem
from projects.core import token_counting
from projects.core.errors import InvalidInputError, StrOrPromise

# The maximum number of tool calls in one reply.
MAX_CALLS = 5
MAX_ARGUMENTS_CHARS = 4_000
MAX_RESULT_TOKENS = 1_200


@dataclass(frozen=True)
class ToolResult:
    """The text for the model, in which untrusted text is quoted, and the items that it contains."""

    text: str
    items: tuple[PromptItem, ...] = ()


@dataclass(frozen=True)
class ModelTool:
    """A tool with the name, description and arguments of its function. `title` is shown on pages.
    The tool is offered if `is_useful` returns True.
    """

    handler: Callable[..., ToolResult]
    title: StrOrPromise
    is_useful: Callable[[Turn], bool]

    @property
    def name(self) -> str:
        return self.handler.__name__

    @cached_property
    def arguments(self) -> type[BaseModel]:
        return arguments_model(self.handler)

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The tool in the format of OpenAI's chat completions, without titles and defaults, which
        repeat names or have no meaning for a model.
        """
        parameters = self.arguments.model_json_schema()
        for schema in (parameters, *parameters["properties"].values()):
            schema.pop("title", None)
            schema.pop("default", None)
        function = {
            "name": self.name,
            "description": " ".join((inspect.getdoc(self.handler) or "").split()),
            "parameters": parameters,
        }
        return {"type": "function", "function": function}

    @cached_property
    def tokens(self) -> int:
        """The number of tokens of the declaration as JSON. Most models use a shorter form."""
        return token_counting.count(json.dumps(self.declaration))

    def run(self, turn: Turn, arguments: str, budget: int) -> ToolResult:
        """Run the tool with the JSON text `arguments`. The result has at most `budget` tokens.

        Raises DomainError, whose message is written for the model.
        """
        return self.handler(replace(turn, budget=budget), **self._parse(arguments))

    def _parse(self, arguments: str) -> dict[str, Any]:
        if len(arguments) > MAX_ARGUMENTS_CHARS:
            raise InvalidInputError(f"Arguments have at most {MAX_ARGUMENTS_CHARS} characters.")
        try:
            fields = from_json(arguments or "{}")
        except ValueError as error:
            raise InvalidInputError(f"The arguments are no valid JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InvalidInputError("The arguments are not a JSON object.")
        # Some models fill in every field, so ignore empty values.
        given = {name: value for name, value in fields.items() if value not in (None, "")}
        try:
            return dict(self.arguments.model_validate(given))
        except ValidationError as error:
            problems = (
                f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()
            )
            raise InvalidInputError("; ".join(problems)) from error


def arguments_model(handler: Callable[..., Any]) -> type[BaseModel]:
    """Return a Pydantic class for the function's parameters, except the first."""
    _context, *parameters = inspect.signature(handler).parameters.values()
    fields: dict[str, Any] = {
        parameter.name: (
            parameter.annotation,
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in parameters
    }
    return create_model(handler.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def model_tool(
    title: StrOrPromise, is_useful: Callable[[Turn], bool] = lambda turn: True
) -> Callable[[Callable[..., ToolResult]], ModelTool]:
    """Return a decorator that turns a function into a tool."""
    return lambda handler: ModelTool(handler, title, is_useful)


def all_tools() -> Mapping[str, ModelTool]:
    """Return the tools in CHAT_MODEL_TOOLS by name."""
    tools = [import_string(path) for path in settings.CHAT_MODEL_TOOLS]
    return {tool.name: tool for tool in tools}


def tools_for(turn: Turn, params: Mapping[str, Any] = {}) -> Mapping[str, ModelTool]:
    """Return the tools that are useful for answering `turn`; none if its model does not support
    tools.

    `params` are parameters of OpenAI's chat completions. Returns none if the client restricts which
    tools are called, or requests a response format other than text, because some models cannot
    combine formats with tools. A tool with the same name as a tool of the client is left out.
    """
    is_text = params.get("response_format", {"type": "text"})["type"] == "text"
    if not is_text or params.get("tool_choice", "auto") != "auto":
        return {}
    useful = {name: tool for name, tool in all_tools().items() if tool.is_useful(turn)}
    if not useful or not providers.accepts_own_tools(turn.model):
        return {}
    taken = {tool["function"]["name"] for tool in params.get("tools", ())}
    return {name: tool for name, tool in useful.items() if name not in taken}


def count_tokens(offered: Mapping[str, ModelTool]) -> int:
    """Return how many tokens the declarations of `offered` take of a model's context."""
    return sum(tool.tokens for tool in offered.values())
