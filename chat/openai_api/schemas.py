"""Validates the parameters of a request for a chat completion."""

import json
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from chat import providers
from chat.providers import ReplyOptions
from projects.core.errors import InvalidInputError

MAX_SESSION_KEY_CHARS = 200
SESSION_HEADERS = ("X-Strata-Session", "X-OpenWebUI-Chat-Id")
# Values of the session headers that mean no session. Some clients send them without a conversation.
EMPTY_SESSION_KEYS = ("", "new", "null", "none", "undefined")
# The prefix of Open WebUI's temporary chats, which are not stored.
TEMPORARY_CHAT_PREFIX = "local"

# OpenAI's parameters, mapped to pydantic-ai's settings that every provider supports.
MODEL_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
# Parameters that are sent unchanged to servers of OpenAI's API. Other providers do not get them.
OPENAI_PARAMS = (
    *("tools", "tool_choice", "parallel_tool_calls", "response_format"),
    *("logit_bias", "reasoning_effort", "verbosity", "prediction", "service_tier"),
)
TOOL_PARAMS = ("tools", "tool_choice", "parallel_tool_calls")
# Parameters that are not supported. Values that have no effect are accepted anyway.
UNSUPPORTED: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "One answer is given to a request."),
    "logprobs": ((False,), "Log probabilities are not supported."),
    "top_logprobs": ((0,), "Log probabilities are not supported."),
    "functions": (([],), "Functions are offered as `tools`."),
    "function_call": (("none", "auto"), "Functions are chosen with `tool_choice`."),
    "audio": ((), "Answers are text."),
    "modalities": ((["text"],), "Answers are text."),
    "web_search_options": ((), "Web search is not supported."),
}


class StopField(serializers.Field):
    """A string, or a list of up to 16 strings."""

    def to_internal_value(self, data: object) -> list[str]:
        stops = [data] if isinstance(data, str) else data
        if not isinstance(stops, list) or len(stops) > 16 or not all(map(is_text, stops)):
            raise serializers.ValidationError("This takes a text, or a list of up to 16 of them.")
        return stops

    def to_representation(self, value: object) -> object:
        return value


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _names_function(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and is_text(function.get("name"))


def optional(field: type[serializers.Field], **limits: Any) -> serializers.Field:
    return field(required=False, allow_null=True, **limits)


class StreamOptionsSerializer(serializers.Serializer):
    include_usage = optional(serializers.BooleanField)


class ChatCompletionSerializer(serializers.Serializer):
    """OpenAI's parameters. Unknown parameters are ignored, unless they are in UNSUPPORTED."""

    model = serializers.CharField(help_text="The slug of a project.")
    messages = serializers.ListField(allow_empty=False)
    stream = optional(serializers.BooleanField)
    stream_options = StreamOptionsSerializer(required=False, allow_null=True)
    temperature = optional(serializers.FloatField, min_value=0, max_value=2)
    top_p = optional(serializers.FloatField, min_value=0, max_value=1)
    max_tokens = optional(serializers.IntegerField, min_value=1)
    max_completion_tokens = optional(serializers.IntegerField, min_value=1)
    stop = optional(StopField)
    seed = optional(serializers.IntegerField)
    presence_penalty = optional(serializers.FloatField, min_value=-2, max_value=2)
    frequency_penalty = optional(serializers.FloatField, min_value=-2, max_value=2)
    tools = optional(serializers.ListField, child=serializers.DictField(), max_length=128)
    tool_choice = optional(serializers.JSONField)
    parallel_tool_calls = optional(serializers.BooleanField)
    response_format = optional(serializers.DictField)
    logit_bias = optional(serializers.DictField)
    reasoning_effort = optional(serializers.CharField)
    verbosity = optional(serializers.CharField)
    prediction = optional(serializers.DictField)
    service_tier = optional(serializers.CharField)

    def validate_tools(self, tools: list[dict] | None) -> list[dict] | None:
        for tool in tools or ():
            function = tool.get("function")
            if not isinstance(function, dict) or not is_text(function.get("name")):
                raise serializers.ValidationError("A tool is a function with a name.")
            if not isinstance(function.get("parameters"), dict | None):
                raise serializers.ValidationError("The parameters of a function are an object.")
        return tools

    def validate_tool_choice(self, choice: Any) -> Any:
        if choice in (None, "auto", "none", "required"):
            return choice
        kinds = ("function", "allowed_tools")
        if not isinstance(choice, dict) or choice.get("type") not in kinds:
            raise serializers.ValidationError("One of none, auto, required, or a function.")
        tools: Any = [choice]
        if choice["type"] == "allowed_tools":
            allowed = choice.get("allowed_tools")
            tools = allowed.get("tools") if isinstance(allowed, dict) else None
        if not isinstance(tools, list) or not tools or not all(map(_names_function, tools)):
            raise serializers.ValidationError(f"It names no {choice['type']}.")
        return choice

    def validate_response_format(self, response_format: dict | None) -> dict | None:
        if response_format is None or response_format.get("type") in ("text", "json_object"):
            return response_format
        schema: Any = response_format.get("json_schema")
        has_name = isinstance(schema, dict) and is_text(schema.get("name"))
        has_schema = has_name and isinstance(schema.get("schema"), dict | None)
        if response_format.get("type") != "json_schema" or not has_schema:
            reason = "One of text, json_object, or json_schema with a schema that has a name."
            raise serializers.ValidationError(reason)
        return response_format


def validate_request(data: Any) -> dict[str, Any]:
    """Return the parameters that the request sets. Raises `InvalidInputError`."""
    if not isinstance(data, dict):
        raise InvalidInputError("The request is not a JSON object.", code="invalid_type")
    for name, (harmless, reason) in UNSUPPORTED.items():
        if data.get(name) is not None and data[name] not in harmless:
            raise InvalidInputError(reason, code="unsupported_parameter", field=name)
    serializer = ChatCompletionSerializer(data=data)
    if not serializer.is_valid():
        # Report the first error, with its path as the field.
        path, errors = [], serializer.errors
        while isinstance(errors, dict):
            name, errors = next(iter(errors.items()))
            path.append(str(name))
        error = errors[0] if isinstance(errors, list) else errors
        is_missing = getattr(error, "code", "") == "required"
        code = "missing_required_parameter" if is_missing else "invalid_value"
        field = ".".join(path)
        raise InvalidInputError(f"{field}: {error}", code=code, field=field)
    params = {name: value for name, value in serializer.validated_data.items() if value is not None}
    for name in params.keys() & {"stop", *OPENAI_PARAMS}:
        try:
            json.dumps(params[name], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            reason = f"{name}: This contains an unpaired surrogate."
            raise InvalidInputError(reason, code="invalid_value", field=name) from error
    return params


def reply_options(params: dict[str, Any], system: str, model: str) -> ReplyOptions:
    """Return the options of a reply by `model`.

    Raises `InvalidInputError` if the request has tools and the model does not support tools.
    """
    openai_params = {name: params[name] for name in OPENAI_PARAMS if name in params}
    if not openai_params.get("tools"):
        # Leave these out, because some servers reject an empty list, or a choice without tools.
        openai_params = {
            name: value for name, value in openai_params.items() if name not in TOOL_PARAMS
        }
    elif not providers.supports_tools(model):
        reason = "The model of this project takes no tools. Set another one in its settings."
        raise InvalidInputError(reason, code="unsupported_parameter", field="tools")
    settings = {MODEL_SETTINGS[name]: params[name] for name in MODEL_SETTINGS if name in params}
    return ReplyOptions(system, settings, openai_params)


def session_name(request: Request) -> str:
    """Return the name that the client gives to the session, or "" for a request without a session.

    Raises `InvalidInputError`.
    """
    for header in SESSION_HEADERS:
        name = request.headers.get(header, "").strip()
        if name.lower() in EMPTY_SESSION_KEYS or "{{" in name:
            continue
        if header != SESSION_HEADERS[0] and name.startswith(TEMPORARY_CHAT_PREFIX):
            return ""
        if len(name) > MAX_SESSION_KEY_CHARS or not name.isprintable():
            limit = f"at most {MAX_SESSION_KEY_CHARS} characters that can be printed"
            raise InvalidInputError(f"{header} takes {limit}.", field=header)
        return name
    return ""
