"""Tools: offered, called and answered by the program; what of it a conversation keeps."""

import json

import openai
import pytest

from tests.scripted import pieces

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Weather",
            "type": "object",
            "properties": {"city": {"type": "string", "title": "City", "default": "Bonn"}},
        },
    },
}
CALL = ("call_1", "get_weather", '{"city": "Köln",  "days":2}')


def calling(*calls, text=None) -> dict:
    """The assistant's message that makes `calls`, as the client sends it back."""
    tool_calls = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
        for key, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": tool_calls}


def answering(key: str, content: str) -> dict:
    return {"role": "tool", "tool_call_id": key, "content": content}


@pytest.fixture
def called(strata, say):
    """A conversation of the key `weather` in which a tool was called and not answered yet."""
    strata.model.call(CALL)
    return say("What is the weather?", session="weather", tools=[WEATHER])


def test_tools_reach_the_model_to_the_letter(strata, say):
    choice = {"type": "function", "function": {"name": "get_weather"}}
    say("Weather?", tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False)
    request = strata.model.requests[-1]
    assert request["tools"] == [WEATHER]
    assert request["tool_choice"] == choice
    assert request["parallel_tool_calls"] is False


def test_a_call_comes_back_to_the_letter(strata, say):
    strata.model.call(CALL, ("call_2", "get_weather", "{}"))
    [choice] = say("Weather?", tools=[WEATHER]).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    calls = [
        (call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls
    ]
    assert calls == [CALL, ("call_2", "get_weather", "{}")]
    assert {call.type for call in choice.message.tool_calls} == {"function"}


def test_words_before_a_call_are_kept(strata, say):
    strata.model.call(CALL, text="I will look.")
    [choice] = say("Weather?", tools=[WEATHER]).choices
    assert choice.message.content == "I will look."
    assert len(choice.message.tool_calls) == 1


@pytest.mark.parametrize("session", ["", "streamed"])
def test_calls_are_streamed(strata, slug, session, user):
    strata.model.call(CALL, ("call_2", "get_weather", "{}"))
    client = strata.client(session=session)
    body = {"model": slug, "messages": [user("Weather?")], "tools": [WEATHER]}
    with client.chat.completions.stream(**body) as stream:
        for _ in stream:
            pass
        [choice] = stream.get_final_completion().choices
    calls = [
        (call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls
    ]
    assert calls == [CALL, ("call_2", "get_weather", "{}")]
    assert choice.finish_reason == "tool_calls"


def test_results_of_tools_reach_the_model(strata, say, user):
    strata.model.say("Sunny.")
    messages = [user("Weather?"), calling(CALL), answering("call_1", '{"sky": "clear"}')]
    assert say(messages, tools=[WEATHER]).choices[0].message.content == "Sunny."
    sent = [
        message for message in strata.model.requests[-1]["messages"] if message["role"] != "system"
    ]
    assert sent == [
        {"role": "user", "content": "Weather?"},
        calling(CALL),
        answering("call_1", '{"sky": "clear"}'),
    ]


def test_a_conversation_keeps_calls_and_answers(strata, slug, say, called):
    messages = [calling(CALL), answering("call_1", "clear")]
    strata.model.say("Sunny.")
    say([{"role": "user", "content": "What is the weather?"}, *messages], session="weather")
    say("And tomorrow?", session="weather")
    sent = [
        message for message in strata.model.requests[-1]["messages"] if message["role"] != "system"
    ]
    assert sent == [
        {"role": "user", "content": "What is the weather?"},
        *messages,
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "And tomorrow?"},
    ]


def test_the_clients_own_message_goes_back_as_it_came(strata, slug, say, user, called):
    messages = [user("What is the weather?"), called.choices[0].message]
    strata.model.say("Sunny.")
    say([*messages, answering("call_1", "clear")], session="weather")
    sent = [
        message for message in strata.model.requests[-1]["messages"] if message["role"] != "system"
    ]
    assert sent[1] == calling(CALL)
    assert [role for role, _ in strata.stored_turns(slug)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_tool_result_may_come_without_the_history(strata, slug, say, called):
    strata.model.say("Sunny.")
    say([calling(CALL), answering("call_1", "clear")], session="weather")
    roles = [role for role, _ in strata.stored_turns(slug)]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_repeated_tool_results_get_a_new_reply(strata, slug, say, called):
    messages = [
        {"role": "user", "content": "What is the weather?"},
        calling(CALL),
        answering("call_1", "clear"),
    ]
    for text in ("Sunny.", "Bright."):
        strata.model.say(text)
        say(messages, session="weather")
    calls = [item for item in strata.stored_turns(slug) if item[0] == "tool"]
    assert len(calls) == 1
    assert strata.stored_turns(slug)[-2:] == [("assistant", "Sunny."), ("assistant", "Bright.")]


def test_parallel_calls_are_answered_together(strata, slug, say, user):
    other = ("call_2", "get_weather", '{"city": "Bonn"}')
    strata.model.call(CALL, other)
    say("Weather?", session="both", tools=[WEATHER])
    strata.model.say("Sunny and wet.")
    answers = [answering("call_2", "wet"), answering("call_1", "clear")]
    say([user("Weather?"), calling(CALL, other), *answers], session="both")
    assert [role for role, _ in strata.stored_turns(slug)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    sent = strata.model.requests[-1]["messages"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == [
        "call_2",
        "call_1",
    ]


def test_a_call_that_nobody_answered_is_no_part_of_the_next_prompt(strata, say, called):
    say("Never mind. What is the time?", session="weather")
    sent = strata.model.requests[-1]["messages"]
    assert not any("tool_calls" in message for message in sent)
    assert strata.prompt_turns == [
        ("user", "What is the weather?"),
        ("user", "Never mind. What is the time?"),
    ]


def test_an_answer_and_a_new_question_may_come_at_once(strata, slug, say, user, called):
    messages = [user("What is the weather?"), calling(CALL), answering("call_1", "clear")]
    say([*messages, user("In one word?")], session="weather")
    assert [role for role, _ in strata.stored_turns(slug)] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert [role for role, _ in strata.prompt_turns] == ["user", "assistant", "tool", "user"]


def test_recall_goes_by_the_question_and_not_by_the_answer_of_a_tool(strata, slug, say, user):
    strata.rest("POST", f"projects/{slug}/notes/", {"text": "The otter pond freezes in March."})
    strata.manage("reindex", f"--project={slug}")
    question = user("When does the otter pond freeze?")
    say([question, calling(CALL), answering("call_1", "17 rows of nothing in particular")])
    systems = [
        message["content"]
        for message in strata.model.requests[-1]["messages"]
        if message["role"] == "system"
    ]
    assert any("otter pond freezes in March" in system for system in systems)


def test_tool_calls_and_results_are_forgotten_with_the_question(strata, slug, say, called):
    say([calling(CALL), answering("call_1", "clear, says mole-rat-7")], session="weather")
    [session] = strata.sessions(slug)
    question = strata.messages(session)[0]["id"]
    strata.manage("forget", f"--project={slug}", f"--message={question}")
    stored_text = json.dumps(strata.messages(session))
    assert "mole-rat-7" not in stored_text
    assert "Köln" not in stored_text
    exported = strata.rest("GET", f"sessions/{session['id']}/export/?format=json")
    assert "Köln" not in json.dumps(exported, ensure_ascii=False)


def test_an_export_holds_calls_and_answers(strata, slug, say, called):
    say([calling(CALL), answering("call_1", "clear")], session="weather")
    [session] = strata.sessions(slug)
    messages = strata.rest("GET", f"sessions/{session['id']}/export/?format=json")["messages"]
    assert messages[1]["tool_calls"] == [
        {"id": "call_1", "name": "get_weather", "arguments": CALL[2]}
    ]
    assert messages[2]["tool_call_id"] == "call_1"


def test_the_demo_model_takes_no_tools(strata, user):
    slug = strata.project(chat_model="demo")
    body = {"model": slug, "messages": [user("Weather?")]}
    with pytest.raises(openai.BadRequestError) as refused:
        strata.client().chat.completions.create(**body, tools=[WEATHER])
    assert refused.value.param == "tools"
    assert refused.value.code == "unsupported_parameter"


def test_a_loose_answer_is_refused(say, user):
    with pytest.raises(openai.BadRequestError) as refused:
        say([user("Weather?"), answering("call_1", "clear")])
    assert refused.value.param == "messages[1].tool_call_id"


def test_no_tools_are_no_tools(strata, say):
    say("Hello", tools=[], tool_choice="auto")
    request = strata.model.requests[-1]
    assert offered(request) == OWN_TOOLS and "tool_choice" not in request


# Strata's own tools beside those of the client


OWN_TOOLS = ["search_memory", "read_chat"]
SEARCH = ("own_1", "search_memory", '{"query": "otter pond"}')


def offered(request) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


@pytest.fixture
def pond(strata, slug):
    """A note that is found by search."""
    strata.rest("POST", f"projects/{slug}/notes/", {"text": "The otter pond freezes in March."})
    strata.manage("reindex", f"--project={slug}")


@pytest.mark.parametrize("session", ["", "looking"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_lookups_are_run_here_and_not_sent_to_the_client(
    strata, slug, user, pond, session, stream, tools
):
    strata.model.call(SEARCH, text="Let me see.")
    strata.model.say("In March.")
    body = {"model": slug, "messages": [user("And then?")]} | ({"tools": tools} if tools else {})
    completions = strata.client(session=session).chat.completions
    if stream:
        with completions.stream(**body) as events:
            for _ in events:
                pass
            [choice] = events.get_final_completion().choices
    else:
        [choice] = completions.create(**body).choices
    assert choice.message.content == "Let me see.\n\nIn March."
    assert not choice.message.tool_calls
    assert choice.finish_reason == "stop"
    first, second = strata.model.requests
    assert offered(first) == [tool["function"]["name"] for tool in tools] + OWN_TOOLS
    [result] = [it["content"] for it in second["messages"] if it["role"] == "tool"]
    assert "The otter pond freezes in March." in result
    if session:
        [reply] = [it for it in strata.messages(strata.sessions(slug)[0]) if it["lookups"]]
        assert reply["lookups"] == [
            {"tool": "search_memory", "arguments": SEARCH[2], "result_count": 1, "error": ""}
        ]
        assert reply["tool_calls"] == []


def test_usage_is_that_of_all_requests(strata, say, pond):
    strata.model.call(SEARCH)
    strata.model.say("In March.")
    usage = say("And then?").usage
    counted = [
        len(pieces(str(message.get("content") or "")))
        for request in strata.model.requests
        for message in request["messages"]
    ]
    assert usage.prompt_tokens == sum(counted)


def test_after_a_lookup_the_client_runs_its_own_tool(strata, slug, say, user):
    strata.model.call(SEARCH)
    strata.model.call(CALL)
    [choice] = say("Weather?", session="mixed", tools=[WEATHER]).choices
    assert [call.id for call in choice.message.tool_calls] == ["call_1"]
    strata.model.say("Sunny.")
    messages = [user("Weather?"), choice.message, answering("call_1", "clear")]
    assert say(messages, session="mixed", tools=[WEATHER]).choices[0].message.content == "Sunny."
    assert [role for role, _ in strata.prompt_turns] == ["user", "assistant", "tool"]


def test_calls_of_both_at_once_are_the_clients(strata, say):
    strata.model.call(SEARCH, CALL)
    [choice] = say("Weather?", tools=[WEATHER]).choices
    assert [call.id for call in choice.message.tool_calls] == ["call_1"]
    assert len(strata.model.requests) == 1


def test_a_tool_of_the_client_with_the_same_name_is_the_clients(strata, say):
    search = {"type": "function", "function": {"name": "search_memory"}}
    strata.model.call(SEARCH)
    [choice] = say("And then?", tools=[search]).choices
    assert [call.id for call in choice.message.tool_calls] == ["own_1"]
    assert offered(strata.model.requests[0]) == ["search_memory", "read_chat"]
    assert strata.model.requests[0]["tools"][0] == search


@pytest.mark.parametrize("choice", ["none", "required"])
def test_a_choice_of_the_client_concerns_its_own_tools(strata, say, choice):
    say("Weather?", tools=[WEATHER], tool_choice=choice)
    assert strata.model.requests[0]["tools"] == [WEATHER]


def test_a_form_of_the_answer_excludes_lookups(strata, say):
    """Gemini combines no schema with tools."""
    say("Weather?", response_format={"type": "json_object"})
    assert "tools" not in strata.model.requests[0]


def test_after_the_limit_the_clients_tools_may_still_be_called(strata, say):
    strata.model.call(*((str(number), *SEARCH[1:]) for number in range(6)))
    strata.model.call(CALL)
    [choice] = say("Weather?", tools=[WEATHER]).choices
    assert [call.id for call in choice.message.tool_calls] == ["call_1"]
    last = strata.model.requests[-1]
    assert offered(last) == ["get_weather"] and "tool_choice" not in last


def test_the_private_chats_of_others_are_not_found(strata, slug, say):
    edgar = strata.manage("create_token", "edgar", "--create", f"--project={slug}")
    session = strata.rest(
        "POST", f"projects/{slug}/sessions/", {"visibility": "private"}, token=edgar
    )
    path = f"sessions/{session['id']}/messages/"
    body = {"content": "The otter pond is a secret of mine.", "reply": False}
    strata.rest("POST", path, body, token=edgar)
    strata.manage("reindex", f"--project={slug}")
    read = ("own_2", "read_chat", json.dumps({"id": session["id"]}))
    strata.model.call(SEARCH, read)
    strata.model.say("Nothing.")
    say("And then?")
    results = [
        it["content"] for it in strata.model.requests[-1]["messages"] if it["role"] == "tool"
    ]
    assert len(results) == 2 and "secret" not in "".join(results)
