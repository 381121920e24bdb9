"""The scripted model looks like a real one to the clients that Strata and its users have."""

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import openai
import pytest
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from tests.scripted import Answer, ScriptedModel, echo, echo_prompt

HELLO = [{"role": "user", "content": "Hello you"}]
PATIENCE = 30  # seconds
LITTLE = 0.4  # of it, where nothing is going to come


@pytest.fixture
def model():
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def client(model):
    with openai.OpenAI(
        base_url=model.base_url, api_key="none", max_retries=0, timeout=PATIENCE
    ) as client:
        yield client


def ask(client, messages=HELLO):
    return client.chat.completions.create(model="m", messages=messages)


def stream(client, **options):
    return client.chat.completions.create(model="m", messages=HELLO, stream=True, **options)


def words(chunks) -> list[str]:
    return [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]


async def through_pydantic(model, streamed: bool, patience: float = PATIENCE):
    """The answer to Hello as pydantic-ai reads it."""
    provider = OpenAIProvider(base_url=model.base_url, api_key="none")
    chat = OpenAIChatModel("m", provider=provider)
    settings = ModelSettings(timeout=patience, max_retries=0)
    messages = [ModelRequest(parts=[UserPromptPart("Hello")])]
    if not streamed:
        return await model_request(chat, messages, model_settings=settings)
    async with model_request_stream(chat, messages, model_settings=settings) as response:
        async for _ in response:
            pass
        return response.get()


def test_a_text_is_sent_in_one_piece_with_its_usage(model, client):
    model.say("One two three.")
    answer = ask(client)
    assert answer.choices[0].message.content == "One two three."
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, 3)


def test_a_text_is_streamed_word_by_word(model, client):
    model.say("One  two\nthree. ")
    assert words(stream(client)) == ["", "One", "  two", "\nthree.", " ", ""]


def test_usage_comes_last_and_only_when_asked_for(model, client):
    model.default = "One two"
    assert all(chunk.usage is None for chunk in stream(client))
    *before, last = stream(client, stream_options={"include_usage": True})
    assert all(chunk.usage is None for chunk in before)
    assert last.choices == []
    assert last.usage.total_tokens == 4


def test_an_answer_can_be_cut_off_by_its_length(model, client):
    model.say("One", finish="length")
    assert list(stream(client))[-1].choices[0].finish_reason == "length"


def test_pieces_arrive_while_the_rest_is_still_to_come(model, client):
    permits = model.dictate("One two three")
    received = []
    for chunk in stream(client):
        received += words([chunk])
        # Without another, nothing more comes.
        permits.release()
    assert received == ["", "One", " two", " three", ""]


def test_a_model_can_be_slow(model, client):
    model.say("One two three", before=0.1, delay=0.1)
    began = time.monotonic()
    arrived = [time.monotonic() - began for chunk in stream(client) if words([chunk]) != [""]]
    assert all(moment > least for moment, least in zip(arrived, (0.2, 0.3, 0.4), strict=False))


def test_behaviours_come_in_their_order_and_then_the_default(model, client):
    model.say("First")
    model.queue("Second", lambda messages: messages["model"].upper())
    model.default = echo
    assert [ask(client).choices[0].message.content for _ in range(4)] == [
        "First",
        "Second",
        "M",
        "Hello you",
    ]


def test_a_function_may_answer_with_trouble(model, client):
    model.queue(lambda messages: Answer(status=503))
    with pytest.raises(openai.InternalServerError):
        ask(client)


def test_the_prompt_can_be_echoed(model, client):
    model.default = echo_prompt
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    assert ask(client, messages).choices[0].message.content == "system: Be brief.\nuser: Hello"


@pytest.mark.parametrize("call", [ask, lambda client: list(stream(client))])
@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (lambda model: model.status(500), openai.InternalServerError),
        (lambda model: model.status(401), openai.AuthenticationError),
        (lambda model: model.status(429, retry_after=7), openai.RateLimitError),
        (lambda model: model.hang(), openai.APITimeoutError),
        (lambda model: model.hang("Some words"), openai.APITimeoutError),
        (lambda model: model.half("Some words"), openai.APIConnectionError),
        (lambda model: model.garbage(), ValueError),
    ],
)
def test_trouble_is_what_openais_client_takes_it_for(model, client, call, behaviour, error):
    behaviour(model)
    patience = LITTLE if error is openai.APITimeoutError else PATIENCE
    with pytest.raises(error):
        call(client.with_options(timeout=patience))
    assert ask(client).choices[0].message.content == "Scripted."


def test_a_busy_model_says_how_long_to_wait(model, client):
    model.status(429, retry_after=7)
    with pytest.raises(openai.RateLimitError) as busy:
        ask(client)
    assert busy.value.response.headers["retry-after"] == "7"


def test_half_an_answer_is_heard_before_the_connection_breaks(model, client):
    model.half("One two")
    received = []
    with pytest.raises(openai.APIConnectionError):
        for chunk in stream(client):
            received += words([chunk])
    assert received == ["", "One", " two"]


def test_nothing_is_an_answer_without_content(model, client):
    model.nothing()
    model.nothing()
    assert ask(client).choices[0].message.content == ""
    assert words(stream(client)) == ["", ""]


@pytest.mark.parametrize("streamed", [False, True])
def test_pydantic_ai_reads_a_text_and_its_usage(model, streamed):
    model.say("One two three.")
    answer = asyncio.run(through_pydantic(model, streamed))
    assert answer.text == "One two three."
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1, 3)
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (lambda model: model.status(500), exceptions.ModelServerError),
        (lambda model: model.status(429, retry_after=7), exceptions.ModelRateLimitError),
        (lambda model: model.hang(), exceptions.ModelTimeoutError),
        (lambda model: model.half("Some words"), exceptions.ModelConnectionError),
        (lambda model: model.garbage(), exceptions.ModelAPIError),
    ],
)
def test_trouble_is_what_pydantic_ai_takes_it_for(model, streamed, behaviour, error):
    behaviour(model)
    patience = LITTLE if error is exceptions.ModelTimeoutError else PATIENCE
    with pytest.raises(error):
        asyncio.run(through_pydantic(model, streamed, patience))


def test_requests_are_kept_until_reset(model, client):
    ask(client)
    assert [request["messages"] for request in model.requests] == [HELLO]
    model.queue("Never said")
    model.default = "Nor this"
    model.reset()
    assert model.requests == []
    assert ask(client).choices[0].message.content == "Scripted."


def test_reset_lets_go_of_who_hangs(model):
    patient = openai.OpenAI(base_url=model.base_url, api_key="none", max_retries=0, timeout=30)
    model.hang()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(ask, patient)
        while not model.requests:
            time.sleep(0.01)
        model.reset()
        with pytest.raises(openai.APIConnectionError):
            waiting.result(timeout=5)


def test_a_caller_who_leaves_is_noticed(model, client):
    model.dictate("One two three")
    with stream(client) as chunks:
        next(iter(chunks))
    deadline = time.monotonic() + 5
    while not model.abandoned and time.monotonic() < deadline:
        time.sleep(0.01)
    assert model.abandoned == 1


def test_many_are_answered_at_once(model, client):
    together = Barrier(20)

    def after_all_arrive(messages) -> str:
        together.wait(PATIENCE)
        return "One"

    model.default = after_all_arrive
    with ThreadPoolExecutor(20) as crowd:
        list(crowd.map(lambda _: ask(client), range(20)))
    assert len(model.requests) == 20


def test_its_model_is_listed(client):
    assert [model.id for model in client.models.list()] == ["scripted"]


def test_other_addresses_are_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="m", input="Hello")


def test_it_serves_by_hand():
    command = [sys.executable, "-m", "tests.scripted", "--port", "0"]
    root = Path(__file__).resolve().parent.parent
    # As in a shell: the variable is set only by the tests.
    environment = {
        name: os.environ[name] for name in os.environ.keys() - {"DJANGO_SETTINGS_MODULE"}
    }
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, text=True, env=environment
    ) as served:
        try:
            base_url = served.stdout.readline().strip()
            with openai.OpenAI(base_url=base_url, api_key="none") as client:
                assert ask(client).choices[0].message.content == "Hello you"
        finally:
            served.terminate()
