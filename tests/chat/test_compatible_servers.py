"""Servers of OpenAI's chat completions API that differ from OpenAI's."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from chat.prompt.types import PromptMessage, ToolCall
from chat.providers import (
    Delta,
    Finished,
    ModelServer,
    OutputSchema,
    OutputSchemaRejectedError,
    ProviderError,
    ReplyOptions,
    Thought,
    compatible,
)
from chat.providers.http_clients import batch_events
from chat.providers.pydantic_ai import PydanticAIProvider

pytestmark = pytest.mark.django_db
PROMPT = [PromptMessage("system", "Be brief."), PromptMessage("user", "When is the cutover?")]
LIMITED = ReplyOptions(settings={"max_tokens": 50})
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
NAMES = ("max_completion_tokens", "max_tokens", "stream_options")


def event(delta: dict, finish_reason: str | None = None, **fields) -> dict:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {
        "choices": [choice],
        **fields,
    }


def words(*texts: str) -> list[dict]:
    return [*(event({"content": text}) for text in texts), event({}, "stop")]


class Wire:
    """A server that sends the queued answers. A list is a stream, in one piece for each item that
    is a list itself.
    """

    def __init__(self) -> None:
        self.answers: list[Sequence | tuple[int, object]] = []
        self.requests: list[dict] = []
        self.ending = ["[DONE]"]
        self.has_length = True

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        answer = self.answers.pop(0)
        if isinstance(answer, tuple):
            return httpx2.Response(answer[0], json=answer[1])
        headers = {"Content-Type": "text/event-stream"}
        response = httpx2.Response(200, headers=headers, content=self._pieces(answer))
        if not self.has_length:
            del response.headers["transfer-encoding"]
        return response

    async def _pieces(self, answer: Sequence) -> AsyncIterator[bytes]:
        for piece in [*answer, *self.ending]:
            events = piece if isinstance(piece, list) else [piece]
            lines = (it if isinstance(it, str) else json.dumps(it) for it in events)
            yield b"".join(f"data: {line}\n\n".encode() for line in lines)

    def sent_fields(self) -> list[dict]:
        return [{name: it[name] for name in NAMES if name in it} for it in self.requests]


@pytest.fixture
def wire(monkeypatch) -> Wire:
    wire = Wire()
    monkeypatch.setattr(compatible, "_rejected", {})
    monkeypatch.setattr(
        PydanticAIProvider,
        "_new_http_client",
        lambda _: httpx2.AsyncClient(
            transport=httpx2.MockTransport(wire), event_hooks={"response": [batch_events]}
        ),
    )
    return wire


@pytest.fixture
def provider() -> PydanticAIProvider:
    return PydanticAIProvider("mistral:m", ModelServer("mistral", "http://mistral.invalid", "key"))


def stream(provider, options=ReplyOptions()) -> tuple[str, str, Finished]:
    """Return the text, the reasoning and the last event."""

    async def collect() -> list:
        return [event async for event in provider.stream(PROMPT, options)]

    *events, finished = asyncio.run(collect())
    assert isinstance(finished, Finished)
    texts = ("".join(it.text for it in events if isinstance(it, kind)) for kind in (Delta, Thought))
    return *texts, finished


def forbidden(*names: str) -> tuple[int, dict]:
    """The error of Mistral's API for fields that it does not have."""
    reason = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
    detail = [reason | {"loc": ["body", name]} for name in names]
    return 422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}


def at(address: str) -> PydanticAIProvider:
    return PydanticAIProvider("lab:m", ModelServer("compatible", address, "key"))


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "The cutover is"},
        {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "tide", "arguments": "{"}}]},
    ],
)
def test_a_stream_that_ends_before_the_reply_has_failed(wire, provider, delta):
    wire.answers, wire.ending, wire.has_length = [[event(delta)]], [], False
    with pytest.raises(ProviderError, match="connection"):
        stream(provider)


@pytest.mark.parametrize(
    ("answer", "ending", "has_length"),
    [
        ([event({"content": "Hello"})], ["[DONE]"], False),
        (words("Hello"), [], False),
        # The server ended the stream, and the connection did not break.
        ([event({"content": "Hello"})], [], True),
    ],
)
def test_each_sign_of_the_end_completes_a_reply(wire, provider, answer, ending, has_length):
    wire.answers, wire.ending, wire.has_length = [answer], ending, has_length
    assert stream(provider)[0] == "Hello"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://lab.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://openrouter.ai/api/v1", "max_tokens"),
        ("https://notopenai.com/v1", "max_tokens"),
    ],
)
def test_the_limit_of_tokens_has_the_name_that_the_server_knows(wire, address, name):
    wire.answers = [words("Hello")]
    stream(at(address), LIMITED)
    assert wire.sent_fields() == [{name: 50, "stream_options": {"include_usage": True}}]


def test_ollama_gets_the_limit_of_tokens(wire, monkeypatch):
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://ollama.invalid/v1")
    wire.answers = [words("Hello")]
    assert stream(PydanticAIProvider("ollama:m"), LIMITED)[0] == "Hello"
    assert wire.sent_fields() == [{"max_tokens": 50, "stream_options": {"include_usage": True}}]


def test_fields_that_a_server_rejects_are_left_out_and_not_sent_again(wire, provider):
    wire.answers = [forbidden("stream_options"), words("Hello"), words("Hello")]
    for _ in range(2):
        assert stream(provider, LIMITED)[0] == "Hello"
    assert wire.sent_fields() == [
        {"max_tokens": 50, "stream_options": {"include_usage": True}},
        {"max_tokens": 50},
        {"max_tokens": 50},
    ]


def test_a_gateway_to_a_reasoning_model_gets_the_newer_limit(wire, provider):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi"},
        "finish_reason": "stop",
    }
    completion = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )
    wire.answers = [
        (400, {"error": {"message": message}}),
        (200, completion | {"choices": [choice], "usage": USAGE}),
    ]
    assert provider.complete(PROMPT, 50).text == "Hi"
    assert wire.sent_fields() == [{"max_tokens": 50}, {"max_completion_tokens": 50}]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (400, "System role not supported"),
        (500, "System role not supported at row 1"),
    ],
)
def test_a_model_without_a_system_role_gets_the_instructions_as_text(
    wire, provider, status, message
):
    wire.answers = [(status, [{"error": {"message": message}}]), words("Hello"), words("Hello")]
    for _ in range(2):
        assert stream(provider)[0] == "Hello"
    merged = [{"role": "user", "content": "Be brief.\n\nWhen is the cutover?"}]
    assert [len(it["messages"]) for it in wire.requests] == [2, 1, 1]
    assert wire.requests[1]["messages"] == wire.requests[2]["messages"] == merged


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        (
            [{"role": "user", "content": [{"type": "image_url"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]}],
        ),
        (
            [{"role": "assistant", "content": "A"}],
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A"}],
        ),
    ],
)
def test_instructions_come_before_images_and_replies(messages, merged):
    system = {"role": "system", "content": "Hi"}
    assert compatible._without_system([system, *messages]) == merged


def test_a_temperature_that_a_model_rejects_is_left_out(wire, provider):
    message = "Unsupported value: 'temperature' does not support 0.3 with this model."
    wire.answers = [(400, {"error": {"message": message}}), words("Hello")]
    assert stream(provider, ReplyOptions(settings={"temperature": 0.3}))[0] == "Hello"
    assert ["temperature" in request for request in wire.requests] == [True, False]


def test_an_effort_that_a_model_rejects_does_not_concern_others(wire, provider):
    message = "Unsupported value: 'reasoning_effort' does not support 'medium' with this model."
    wire.answers = [(400, {"error": {"message": message}}), words("Hello"), words("Hello")]
    for effort in ("medium", "low"):
        stream(provider, ReplyOptions(openai_params={"reasoning_effort": effort}))
    assert [it.get("reasoning_effort") for it in wire.requests] == ["medium", None, "low"]


def test_the_value_of_another_field_does_not_replace_the_limit(wire, provider):
    effort = "unknown max_tokens"
    message = f"Invalid reasoning_effort: '{effort}'"
    wire.answers = [(400, {"error": {"message": message}}), words("Hello")]
    options = {"reasoning_effort": effort, "max_tokens": 50}
    stream(provider, ReplyOptions(openai_params=options))
    assert [it.get("max_tokens") for it in wire.requests] == [50, 50]


def test_what_servers_reject_is_kept_for_a_limited_number_of_models(wire, provider, monkeypatch):
    monkeypatch.setattr(compatible, "MAX_REJECTED", 2)
    wire.answers = [forbidden("stream_options"), words("Hello")] * 3
    for effort in ("a", "b", ["c"]):
        stream(provider, ReplyOptions(openai_params={"reasoning_effort": effort}))
    assert len(compatible._rejected) == 2


def test_an_error_that_quotes_the_request_does_not_concern_others(wire, provider):
    quoted = {"detail": [{"input": "Is max_tokens unsupported?", "msg": "The queue is full."}]}
    wire.answers = [(422, quoted), (422, quoted), words("Hello")]
    with pytest.raises(ProviderError, match="rejected the request"):
        stream(provider, LIMITED)
    stream(provider, LIMITED)
    names = [next(name for name in NAMES if name in it) for it in wire.requests]
    assert names == ["max_tokens", "max_completion_tokens", "max_tokens"]


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 50. This model supports at most 40 completion tokens.",
        "Extra inputs are not permitted: seed",
    ],
)
def test_other_rejections_are_reported(wire, provider, message):
    wire.answers = [(400, {"error": {"message": message}})]
    with pytest.raises(ProviderError, match="rejected the request"):
        stream(provider, LIMITED)
    assert len(wire.requests) == 1


def test_a_field_is_replaced_only_once(wire, provider):
    wire.answers = [forbidden("max_tokens"), forbidden("max_completion_tokens")]
    with pytest.raises(ProviderError, match="rejected the request"):
        stream(provider, LIMITED)
    assert len(wire.requests) == 2


def test_the_tokens_so_far_in_each_event_are_not_added_up(wire, provider):
    counts = [USAGE | {"completion_tokens": number} for number in (1, 2, 3)]
    events = words("On", " 3 March.")
    wire.answers = [[it | {"usage": usage} for it, usage in zip(events, counts, strict=True)]]
    _, _, finished = stream(provider)
    assert (finished.input_tokens, finished.output_tokens) == (7, 3)


@pytest.mark.parametrize("usage", [{**USAGE, "prompt_tokens": 0, "completion_tokens": 0}, {}])
def test_tokens_that_a_server_does_not_count_are_estimated(wire, provider, usage):
    wire.answers = [[*words("On", " 3 March."), event({}, choices=[], usage=usage)]]
    _, _, finished = stream(provider)
    assert finished.input_tokens == sum(message.tokens for message in PROMPT)
    assert finished.output_tokens > 0


def test_tool_calls_with_the_same_number_stay_apart(wire, provider):
    def call(id: str | None, name: str | None, arguments: str) -> dict:
        function = {"name": name, "arguments": arguments}
        return event({"tool_calls": [{"index": 0, "id": id, "function": function}]})

    wire.answers = [
        [
            call("c1", "search", '{"a":'),
            call("x9", None, "1}"),
            call("c2", "search", '{"a":2}'),
            event({}, "tool_calls"),
        ]
    ]
    _, _, finished = stream(provider)
    assert finished.calls == (
        ToolCall("c1", "search", '{"a":1}'),
        ToolCall("c2", "search", '{"a":2}'),
    )


def test_each_of_many_tool_calls_is_numbered_at_once():
    """A server could block the event loop for minutes with the numbers of a single event."""
    numbers, calls = itertools.count(), {}
    delta = ChoiceDelta.construct(
        tool_calls=[ChoiceDeltaToolCall.construct(index=number) for number in range(20_000)]
    )
    compatible._number_calls(delta, calls, numbers)
    assert next(numbers) == len(calls) == 20_000


@pytest.mark.parametrize("sizes", [[1] * 1_001, [600_000] * 2])
def test_too_many_or_too_long_tool_calls_are_given_up(wire, provider, sizes):
    calls = [
        {"index": number, "id": f"c{number}", "function": {"name": "search", "arguments": "x" * it}}
        for number, it in enumerate(sizes)
    ]
    wire.answers = [[event({"tool_calls": [call]}) for call in calls]]
    with pytest.raises(ProviderError, match="could not read"):
        stream(provider)


TAGGED = ("<think>", "\n", "Hm", ", so", "</think>", "\n\n", "On ", "3 March.")


@pytest.mark.parametrize(
    "pieces",
    [
        [words(*TAGGED)],
        words(*TAGGED),
        [words(*TAGGED)[:1], words(*TAGGED)[1:]],
        [words("\n<think>\nHm, so</think>\n\nOn 3 March.")],
        [words("<think>\nHm", ", so</think>\n\nOn", " 3 March.")],
        words("<", "think", ">\nHm, ", "so</", "think", ">", "\n\nOn 3 March."),
        [words("\n<th", "ink>Hm, so", "</thi", "nk>On 3 March.")],
    ],
)
def test_reasoning_in_the_text_is_recognised_however_it_arrives(wire, provider, pieces):
    wire.answers = [pieces]
    text, thought, _ = stream(provider)
    assert (text.strip(), thought.strip()) == ("On 3 March.", "Hm, so")


@pytest.mark.parametrize("reply", ["Use <think> or </think>.", "</think> ends it.", "<thinking>"])
def test_tags_within_a_reply_are_text(wire, provider, reply):
    wire.answers = [words(reply, " Done.")]
    assert stream(provider)[:2] == (f"{reply} Done.", "")


@pytest.mark.parametrize("pieces", [("<",), (" <", "thin"), ("<", "b>Hi</b>"), ("<t", "<think>")])
def test_the_beginning_of_a_tag_that_does_not_come_is_text(wire, provider, pieces):
    wire.answers = [words(*pieces)]
    assert stream(provider)[:2] == ("".join(pieces), "")


TOO_LONG = [
    {"error": {"message": "the request exceeds the available context size", "code": 400}},
    {"error": "The number of tokens to keep is greater than the context length"},
    [{"error": {"message": "The input token count (9) exceeds the maximum number of tokens"}}],
    {"error": "This model's maximum prompt length is 131072."},
    {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"},
]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        *((400, body, "context_length_exceeded") for body in TOO_LONG),
        (413, {"error": {"message": "Request too large"}}, "context_length_exceeded"),
        (400, [{"error": {"message": "API key not valid."}}], "model_not_configured"),
        (400, {"error": {"message": "No", "code": "content_filter"}}, "content_filter"),
        (400, {"message": "Invalid model: m", "type": "invalid_model"}, "model_not_configured"),
        (500, {"error": {"message": "Context size has been exceeded."}}, "context_length_exceeded"),
    ],
)
def test_the_words_of_a_provider_are_recognised(wire, provider, status, body, code):
    wire.answers = [(status, body)]
    with pytest.raises(ProviderError) as caught:
        stream(provider)
    assert caught.value.code == code


def test_a_prompt_that_is_too_long_is_no_rejected_schema(wire, provider):
    wire.answers = [(400, TOO_LONG[0])]
    with pytest.raises(ProviderError) as caught:
        provider.complete(PROMPT, 50, OutputSchema("s", {"type": "object"}))
    assert not isinstance(caught.value, OutputSchemaRejectedError)


@pytest.mark.parametrize(
    ("events", "message", "code"),
    [
        ([event({}, "content_filter")], "blocked the reply", "content_filter"),
        ([event({"refusal": "I cannot."}), event({}, "stop")], "blocked", "content_filter"),
        (
            [event({"reasoning_content": "Hm"}), event({}, "length")],
            "reached its token limit",
            "upstream_error",
        ),
        ([event({}, "stop")], "empty reply", "upstream_error"),
    ],
)
def test_a_reply_without_text_has_its_reason(wire, provider, events, message, code):
    wire.answers = [events]
    with pytest.raises(ProviderError, match=message) as caught:
        stream(provider)
    assert caught.value.code == code
