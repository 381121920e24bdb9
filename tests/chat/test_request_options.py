"""Request options for providers that do not use OpenAI's protocol."""

import pytest
from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from chat.prompt.types import PromptMessage, ToolCall
from chat.providers import ProviderError
from chat.providers.base import ReplyOptions
from chat.providers.message_mapping import to_model_messages, to_model_settings

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": FUNCTION}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "day", "schema": PARAMETERS}}


@pytest.fixture
def claude() -> AnthropicModel:
    return AnthropicModel("claude-haiku-4-5", provider=AnthropicProvider(api_key="none"))


@pytest.fixture
def server() -> OpenAIChatModel:
    return OpenAIChatModel("any", provider=OpenAIProvider(base_url="http://x/v1", api_key="none"))


def test_a_server_that_speaks_it_gets_it_as_it_came(server):
    wire = {"tools": TOOLS, "response_format": SCHEMA}
    settings, parameters = to_model_settings(
        server, ReplyOptions(settings={"temperature": 0.1}, openai_params=wire)
    )
    assert settings == {"temperature": 0.1, "extra_body": wire}
    assert parameters.function_tools == []


def test_empty_options_change_nothing(server, claude):
    for model in (server, claude):
        assert to_model_settings(model, ReplyOptions())[0] == {}


def test_tools_are_translated_for_others(claude):
    wire = {"tools": TOOLS, "parallel_tool_calls": False, "tool_choice": "required"}
    settings, parameters = to_model_settings(
        claude, ReplyOptions(settings={"seed": 1}, openai_params=wire)
    )
    assert settings == {"seed": 1, "parallel_tool_calls": False, "tool_choice": "required"}
    [tool] = parameters.function_tools
    assert (tool.name, tool.description) == ("get_weather", "The weather.")
    assert tool.parameters_json_schema == PARAMETERS


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "get_weather"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": TOOLS}},
    ],
)
def test_the_choice_of_a_tool_is_its_name(claude, choice):
    wire = {"tools": TOOLS, "tool_choice": choice}
    assert to_model_settings(claude, ReplyOptions(openai_params=wire))[0]["tool_choice"] == [
        "get_weather"
    ]


def test_own_tools_follow_those_of_the_client(server, claude):
    own = {"type": "function", "function": FUNCTION | {"name": "search_memory"}}
    options = ReplyOptions(openai_params={"tools": TOOLS}, own_tools=[own])
    assert to_model_settings(server, options)[0]["extra_body"] == {"tools": [*TOOLS, own]}
    names = [tool.name for tool in to_model_settings(claude, options)[1].function_tools]
    assert names == ["get_weather", "search_memory"]


def test_a_models_answer_is_sent_back_unchanged():
    """Some providers demand the signature of a thought before a call."""
    thought = ThinkingPart("Hm.", signature="sig", provider_name="anthropic")
    native = ModelResponse(parts=[thought, ToolCallPart("search_memory", "{}", "1")])
    call = ToolCall("1", "search_memory", "{}")
    prompt = [
        PromptMessage("user", "And then?"),
        PromptMessage("assistant", "", calls=(call,), native=native),
        PromptMessage("tool", "Nothing.", tool_call_id="1"),
    ]
    _, answer, result = to_model_messages(prompt, {})
    assert answer is native
    assert (result.parts[0].tool_name, result.parts[0].content) == ("search_memory", "Nothing.")


def test_a_schema_is_translated_for_others(claude):
    _, parameters = to_model_settings(
        claude, ReplyOptions(openai_params={"response_format": SCHEMA})
    )
    assert parameters.output_mode == "native"
    assert parameters.output_object.json_schema == PARAMETERS


@pytest.mark.parametrize("schema", [{}, {"schema": None}])
def test_a_missing_schema_permits_every_object(claude, schema):
    form = {"type": "json_schema", "json_schema": {"name": "day"} | schema}
    _, parameters = to_model_settings(claude, ReplyOptions(openai_params={"response_format": form}))
    assert parameters.output_object.json_schema == {"type": "object"}


def test_plain_json_is_refused_where_there_is_no_such_thing(claude):
    form = {"type": "json_object"}
    with pytest.raises(ProviderError) as refused:
        to_model_settings(claude, ReplyOptions(openai_params={"response_format": form}))
    assert refused.value.status == 400
