"""A request for a chat completion: what it may ask, and what becomes of that."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from chat import providers
from chat.api.completions.errors import Refused
from chat.options import Options

# Keys that a program may give its conversations, in characters.
LONGEST_KEY = 200
HEADERS = ("X-Strata-Session", "X-OpenWebUI-Chat-Id")
# What programs send that have no conversation yet, or did not fill in their template.
NO_KEYS = ("", "new", "null", "none", "undefined")
# Open WebUI's temporary chats: they are to leave nothing behind.
TEMPORARY = "local"

# OpenAI's names for what pydantic-ai knows under its own, for every provider.
SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
# What servers that speak this protocol get as it came.
WIRE = (
    *("tools", "tool_choice", "parallel_tool_calls", "response_format"),
    *("logit_bias", "reasoning_effort", "verbosity", "prediction", "service_tier"),
)
TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
# What cannot be done here, and the values that ask for nothing.
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "One answer is given to a request."),
    "logprobs": ((False,), "Log probabilities are not told."),
    "top_logprobs": ((0,), "Log probabilities are not told."),
    "functions": (([],), "Functions are offered as `tools`."),
    "function_call": (("none", "auto"), "Functions are chosen with `tool_choice`."),
    "audio": ((), "Answers are given in words."),
    "modalities": ((["text"],), "Answers are given in words."),
    "web_search_options": ((), "The web is not searched here."),
}


class StopField(serializers.Field):
    """A text, or a list of up to sixteen."""

    def to_internal_value(self, data: object) -> list[str]:
        stops = [data] if isinstance(data, str) else data
        if not isinstance(stops, list) or len(stops) > 16 or not all(_is_word(it) for it in stops):
            raise serializers.ValidationError("This takes a text, or a list of up to 16 of them.")
        return stops

    def to_representation(self, value: object) -> object:
        return value


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value)


class StreamOptionsSerializer(serializers.Serializer):
    include_usage = serializers.BooleanField(required=False, default=False)


def _optional(field: type[serializers.Field], **limits: Any) -> serializers.Field:
    return field(required=False, allow_null=True, **limits)


class CompletionRequestSerializer(serializers.Serializer):
    """As OpenAI's. Parameters that are not listed are passed over, as far as they ask for nothing
    that cannot be done.
    """

    model = serializers.CharField(help_text="The slug of a project.")
    messages = serializers.ListField(allow_empty=False)
    stream = _optional(serializers.BooleanField)
    stream_options = StreamOptionsSerializer(required=False, allow_null=True)
    temperature = _optional(serializers.FloatField, min_value=0, max_value=2)
    top_p = _optional(serializers.FloatField, min_value=0, max_value=1)
    max_tokens = _optional(serializers.IntegerField, min_value=1)
    max_completion_tokens = _optional(serializers.IntegerField, min_value=1)
    stop = _optional(StopField)
    seed = _optional(serializers.IntegerField)
    presence_penalty = _optional(serializers.FloatField, min_value=-2, max_value=2)
    frequency_penalty = _optional(serializers.FloatField, min_value=-2, max_value=2)
    tools = _optional(serializers.ListField, child=serializers.DictField(), max_length=128)
    tool_choice = _optional(serializers.JSONField)
    parallel_tool_calls = _optional(serializers.BooleanField)
    response_format = _optional(serializers.DictField)
    logit_bias = _optional(serializers.DictField)
    reasoning_effort = _optional(serializers.CharField)
    verbosity = _optional(serializers.CharField)
    prediction = _optional(serializers.DictField)
    service_tier = _optional(serializers.CharField)

    def validate_tools(self, tools: list[dict] | None) -> list[dict] | None:
        for tool in tools or ():
            function = tool.get("function")
            if not isinstance(function, dict) or not _is_word(function.get("name")):
                raise serializers.ValidationError("A tool is a function with a name.")
        return tools

    def validate_tool_choice(self, choice: Any) -> Any:
        if choice in (None, "auto", "none", "required"):
            return choice
        kinds = ("function", "allowed_tools")
        if not isinstance(choice, dict) or choice.get("type") not in kinds:
            raise serializers.ValidationError("One of none, auto, required, or a function.")
        if not isinstance(choice.get(choice["type"]), dict):
            raise serializers.ValidationError(f"It names no {choice['type']}.")
        return choice

    def validate_response_format(self, form: dict | None) -> dict | None:
        if form is None or form.get("type") in ("text", "json_object"):
            return form
        told = form.get("json_schema")
        named = isinstance(told, dict) and _is_word(told.get("name"))
        if form.get("type") != "json_schema" or not named:
            reason = "One of text, json_object, or json_schema with a schema that has a name."
            raise serializers.ValidationError(reason)
        return form


def checked(data: Any) -> dict[str, Any]:
    """The parameters of a request that ask for something. Raises Refused."""
    if not isinstance(data, dict):
        raise Refused("The request is not a JSON object.", None, "invalid_type")
    for name, (harmless, reason) in REFUSED.items():
        if data.get(name) is not None and data[name] not in harmless:
            raise Refused(reason, name, "unsupported_parameter")
    given = CompletionRequestSerializer(data=data)
    if not given.is_valid():
        raise _refused(given.errors)
    return {name: value for name, value in given.validated_data.items() if value is not None}


def _refused(errors: Any) -> Refused:
    """The first of a serializer's errors, with the way to it."""
    place = ""
    while isinstance(errors, dict):
        name, errors = next(iter(errors.items()))
        place = f"{place}.{name}" if place else str(name)
    first = errors[0] if isinstance(errors, list) else errors
    missing = getattr(first, "code", "") == "required"
    code = "missing_required_parameter" if missing else "invalid_value"
    return Refused(f"{place}: {first}", place, code)


def options(asked: dict[str, Any], system: str, model: str) -> Options:
    """What is asked of a reply of `model`. Raises Refused for tools that it cannot be offered."""
    wire = {name: asked[name] for name in WIRE if name in asked}
    if not wire.get("tools"):
        # An empty list, or a choice among nothing, is an error to some servers.
        wire = {name: value for name, value in wire.items() if name not in TOOLS}
    elif not providers.can_call(model):
        reason = "The model of this project takes no tools. Its settings name another."
        raise Refused(reason, "tools", "unsupported_parameter")
    settings = {SETTINGS[name]: asked[name] for name in SETTINGS if name in asked}
    return Options(system, settings, wire)


def key_of(request: Request) -> str:
    """What the program calls the conversation; empty where it names none. Raises Refused."""
    for header in HEADERS:
        name = request.headers.get(header, "").strip()
        if name.lower() in NO_KEYS or "{{" in name:
            continue
        if header != HEADERS[0] and name.startswith(TEMPORARY):
            return ""
        if len(name) > LONGEST_KEY or not name.isprintable():
            reason = f"{header} takes at most {LONGEST_KEY} characters that can be printed."
            raise Refused(reason, header)
        return name
    return ""
