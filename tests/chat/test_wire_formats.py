"""The wire formats of OpenAI, Anthropic and Ollama: text, streams, tools, images, usage, errors."""

import asyncio
import json
from uuid import uuid4

import pytest

from chat.prompt.types import PromptImage, PromptMessage
from chat.providers import Delta, Finished, ModelServer, ProviderError, ReplyOptions
from chat.providers.pydantic_ai import PydanticAIProvider
from tests.chat.pictures import picture
from tests.scripted import Answer
from tests.shape.ports import reserved_port

pytestmark = pytest.mark.django_db
PROMPT = [PromptMessage("system", "Be brief."), PromptMessage("user", "When is the cutover?")]
TOOL = {
    "type": "function",
    "function": {
        "name": "search_memory",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
OWN_TOOLS = ReplyOptions(own_tools=[TOOL])


@pytest.fixture(params=["openai-chat", "anthropic", "ollama"])
def provider(request, scripted, monkeypatch) -> PydanticAIProvider:
    if request.param == "anthropic":
        address = scripted.base_url.removesuffix("/v1")
        return PydanticAIProvider("anthropic:scripted", ModelServer("anthropic", address, "key"))
    monkeypatch.setenv("OLLAMA_BASE_URL", scripted.base_url)
    return PydanticAIProvider(f"{request.param}:scripted")


def stream(provider, prompt=PROMPT, options=ReplyOptions()) -> tuple[str, Finished]:
    async def collect() -> list:
        return [event async for event in provider.stream(prompt, options)]

    *deltas, finished = asyncio.run(collect())
    assert isinstance(finished, Finished)
    return "".join(event.text for event in deltas if isinstance(event, Delta)), finished


def counts(finished: Finished) -> tuple[int, int, int]:
    return finished.input_tokens, finished.cached_tokens, finished.output_tokens


def test_text_and_usage_with_cached_tokens(provider, scripted):
    scripted.queue(*[Answer("On 3 March.", cached=2)] * 2)
    text, finished = stream(provider)
    completion = provider.complete(PROMPT, 50)
    assert text == completion.text == "On 3 March."
    # Anthropic's system prompt is not among the messages that the server counts.
    prompt_tokens = 4 if provider.name.startswith("anthropic") else 6
    assert counts(finished) == counts(completion.finished) == (prompt_tokens, 2, 3)
    assert [bool(request.get("stream")) for request in scripted.requests] == [True, False]


def test_a_tool_is_called_and_its_result_is_sent_back(provider, scripted):
    arguments = '{"query": "cutover"}'
    scripted.call(("call_1", "search_memory", arguments))
    scripted.say("On 3 March.")
    _, finished = stream(provider, options=OWN_TOOLS)
    [call] = finished.calls
    assert (call.id, call.name, json.loads(call.arguments)) == (
        "call_1",
        "search_memory",
        json.loads(arguments),
    )
    history = [
        *PROMPT,
        PromptMessage("assistant", "", calls=finished.calls, native=finished.native),
        PromptMessage("tool", "It is on 3 March.", tool_call_id=call.id),
    ]
    assert stream(provider, history, OWN_TOOLS)[0] == "On 3 March."
    first, second = map(json.dumps, scripted.requests)
    assert "search_memory" in first
    assert "It is on 3 March." in second
    assert second.count("call_1") == 2


def test_an_image_is_sent_with_its_text(provider, scripted):
    data = picture()
    image = PromptImage(uuid4(), "image/png", "A map", 8, 8, data=data)
    stream(provider, [PromptMessage("user", "What is this?", images=(image,))])
    [request] = scripted.requests
    kinds = [part["type"] for part in request["messages"][-1]["content"]]
    assert kinds in (["image_url", "text"], ["image", "text"])


@pytest.mark.parametrize(
    ("status", "advice", "is_outage"),
    [
        (401, "enter it again on the Models page", False),
        (402, "Add credit at the provider, or choose another model", True),
        (404, "Choose another model", True),
        (429, "Try again in a few minutes", True),
        (529, "Try again", True),
    ],
)
def test_errors_say_what_to_do(provider, scripted, status, advice, is_outage):
    for call in (lambda: stream(provider), lambda: provider.complete(PROMPT, 50)):
        scripted.status(status)
        with pytest.raises(ProviderError) as caught:
            call()
        assert advice in str(caught.value)
        assert caught.value.is_outage is is_outage
        assert "Scripted" not in str(caught.value)


def test_a_refused_connection_says_what_to_do(provider, scripted, monkeypatch):
    """Nobody listens at the address of the provider."""
    reservation, port = reserved_port()
    address = f"http://127.0.0.1:{port}"
    if provider.server is None:
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        # The clients of models keep the address with which they were made.
        provider = PydanticAIProvider(provider.name.replace("scripted", f"gone-{port}"))
    else:
        provider = PydanticAIProvider(provider.name, ModelServer("anthropic", address, "key"))
    for call in (lambda: stream(provider), lambda: provider.complete(PROMPT, 50)):
        with pytest.raises(ProviderError) as caught:
            call()
        assert "Check that its server is running" in str(caught.value)
        assert (caught.value.is_outage, caught.value.status) == (True, 502)
        assert str(port) not in str(caught.value)
    reservation.close()
    assert scripted.requests == []
