"""OpenAI's own client, given only an address and a token."""

import asyncio
import threading

import pytest

from chat.openai_api import views
from chat.streaming.live_replies import LiveReply
from tests.scripted import Answer


def test_each_project_is_a_model(strata, slug):
    models = {model.id: model for model in strata.client().models.list()}
    assert models[slug].object == "model"
    assert models[slug].owned_by == "strata"
    assert strata.client().models.retrieve(slug).id == slug


def test_it_is_answered(strata, slug, say):
    strata.model.say("On 3 March.")
    answer = say("When is the cutover?")
    [choice] = answer.choices
    assert choice.message.role == "assistant"
    assert choice.message.content == "On 3 March."
    assert choice.finish_reason == "stop"
    assert (answer.object, answer.model) == ("chat.completion", slug)
    assert answer.id.startswith("chatcmpl-")


def test_the_response_reports_the_usage(strata, say):
    strata.model.say("One two three four.")
    usage = say("Count").usage
    assert usage.completion_tokens == 4
    assert usage.prompt_tokens > 4
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_an_answer_that_was_cut_off_says_so(strata, say):
    strata.model.say("One two", finish="length")
    assert say("Count").choices[0].finish_reason == "length"


def test_an_answer_that_was_filtered_says_so(strata, slug, say):
    strata.model.queue(*[Answer("One two", finish="content_filter")] * 2)
    assert say("Count", session="a").choices[0].finish_reason == "content_filter"
    *_, last = say("Count", stream=True)
    assert last.choices[0].finish_reason == "content_filter"
    [session] = strata.sessions(slug)
    assert "blocked the rest" in strata.messages(session)[-1]["error"]


def test_tokens_from_the_providers_cache_are_counted(strata, say):
    strata.model.queue(Answer("One two", cached=3))
    assert say("Count").usage.prompt_tokens_details.cached_tokens == 3


def test_a_stream_begins_while_the_model_reasons(strata, slug):
    permits = threading.Semaphore(0)
    strata.model.queue(Answer("On 3 March.", thoughts=("Hm. ",), permits=permits))
    client = strata.client(timeout=10)
    body = {"model": slug, "messages": [{"role": "user", "content": "When?"}], "stream": True}
    with client.chat.completions.create(**body) as stream:
        # The response is here, but not yet a word of the reply.
        permits.release(3)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert text == "On 3 March."


def test_reasoning_is_sent_apart_from_the_text(strata, say):
    answer = Answer("On 3 March.", thoughts=("They ask ", "for a day."))
    strata.model.queue(answer)
    message = say("When?").choices[0].message
    assert (message.content, message.reasoning_content) == ("On 3 March.", "They ask for a day.")
    strata.model.queue(answer)
    deltas = [chunk.choices[0].delta for chunk in say("When?", stream=True)]
    thoughts = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(thoughts) == "They ask for a day."
    assert "".join(delta.content or "" for delta in deltas) == "On 3 March."
    assert not any(
        delta.content for delta, thought in zip(deltas, thoughts, strict=True) if thought
    )


def test_a_stream_begins_after_some_time_in_any_case():
    live = LiveReply()

    async def start() -> LiveReply:
        return live

    assert asyncio.run(views._wait_for(start(), True, lambda live: False, 0.01)) is live


def test_the_asynchronous_client_is_answered_too(strata, slug):
    async def talk() -> tuple[str, str]:
        async with strata.async_client() as client:
            body = {"model": slug, "messages": [{"role": "user", "content": "Hello"}]}
            whole = await client.chat.completions.create(**body)
            stream = await client.chat.completions.create(**body, stream=True)
            pieces = [event.choices[0].delta.content or "" async for event in stream]
            return whole.choices[0].message.content, "".join(pieces)

    assert asyncio.run(talk()) == ("Scripted.", "Scripted.")


def test_a_stream_has_the_chunks_of_the_official_one(strata, slug, say):
    permits = strata.model.dictate("On 3 March.")
    permits.release()
    chunks = []
    for chunk in say("When?", stream=True):
        chunks.append(chunk)
        permits.release()
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.model for chunk in chunks} == {slug}
    first, *middle, last = chunks
    assert first.choices[0].delta.role == "assistant"
    assert all(item.choices[0].delta.role is None for item in middle)
    assert len(middle) > 1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "On 3 March."
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert last.choices[0].finish_reason == "stop"
    assert last.choices[0].delta.content is None
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_tells_what_it_took_where_that_is_asked(strata, say):
    strata.model.say("One two three.")
    *chunks, last = say("Count", stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage.completion_tokens == 3
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all("usage" in chunk.model_fields_set and chunk.usage is None for chunk in chunks)


def test_a_stream_option_without_a_value_is_not_set(strata, say):
    strata.model.say("One two three.")
    chunks = list(say("Count", stream=True, stream_options={"include_usage": None}))
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_the_stream_ends_as_the_official_one(strata, slug):
    body = {"model": slug, "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    client = strata.client()
    with client.chat.completions.with_streaming_response.create(**body) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        lines = list(answer.iter_lines())
    assert all(line.startswith("data: ") for line in lines if line)
    assert [line for line in lines if line][-1] == "data: [DONE]"


OPTIONS = {
    "temperature": 0.3,
    "top_p": 0.9,
    "seed": 7,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "response_format": {"type": "json_object"},
    "logit_bias": {"50256": -100},
    "reasoning_effort": "low",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_request_options_reach_the_model(strata, say, name):
    say("Hello", **{name: OPTIONS[name]})
    assert strata.model.requests[-1][name] == OPTIONS[name]


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_longest_answer_is_asked_for_under_either_name(strata, say, name):
    say("Hello", **{name: 12})
    request = strata.model.requests[-1]
    assert request.get("max_completion_tokens", request.get("max_tokens")) == 12


@pytest.mark.parametrize(("value", "sent"), [("END", ["END"]), (["A", "B"], ["A", "B"])])
def test_it_stops_where_it_is_asked_to(strata, say, value, sent):
    say("Hello", stop=value)
    assert strata.model.requests[-1]["stop"] == sent


def test_a_schema_reaches_the_model_to_the_letter(strata, say):
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Day",
        "type": "object",
        "properties": {"day": {"type": "string", "title": "The day"}},
    }
    form = {"type": "json_schema", "json_schema": {"name": "day", "schema": schema}}
    say("When?", response_format=form)
    assert strata.model.requests[-1]["response_format"] == form


def test_options_without_a_value_are_not_sent(strata, say):
    say("Hello", temperature=None, stop=None, n=1, logprobs=False)
    request = strata.model.requests[-1]
    assert {"temperature", "stop", "n", "logprobs", "max_tokens"} & set(request) == set()
    # Strata's own.
    assert [it["function"]["name"] for it in request["tools"]] == ["search_memory", "read_chat"]


def test_several_turns_are_the_history(strata, say, user, assistant):
    messages = [user("The cutover is on 3 March."), assistant("Noted."), user("When is it?")]
    say(messages)
    assert strata.prompt_turns == [(message["role"], message["content"]) for message in messages]


def test_the_programs_own_words_stand_beneath_the_projects(strata, say, user):
    strata.model.reset()
    system = {"role": "system", "content": "Answer like a pirate."}
    say([system, user("Hello"), {"role": "developer", "content": "Be brief."}])
    assert strata.front.index("assistant of the project") < strata.front.index("pirate")
    assert strata.front.endswith("Answer like a pirate.\n\nBe brief.")
    assert strata.prompt_turns == [("user", "Hello")]


def test_a_request_may_be_nothing_but_the_programs_words(strata, say):
    say([{"role": "system", "content": "Say hello."}])
    assert strata.front.endswith("Say hello.")


def test_parts_of_words_are_one_message(strata, say):
    parts = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]
    say([{"role": "user", "content": parts}])
    assert strata.prompt_turns == [("user", "Hello\nthere")]


def test_the_speakers_of_a_request_are_distinguished(strata, say):
    say(
        [
            {"role": "user", "name": "Ana", "content": "I own billing."},
            {"role": "assistant", "content": "Noted."},
            {"role": "user", "name": "Ben", "content": "Who owns billing?"},
        ]
    )
    assert strata.prompt_turns[0] == ("user", "Ana: I own billing.")
    assert strata.prompt_turns[2] == ("user", "Ben: Who owns billing?")


def test_text_that_no_database_takes_is_taken(strata, say):
    say("A\0B", session="odd")
    assert strata.prompt_turns == [("user", "AB")]
