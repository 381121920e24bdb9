"""Errors have OpenAI's shape and status codes."""

import json
from http.client import HTTPConnection

import openai
import pytest

from tests.membership import join
from tests.torture.clients import Api

HELLO = [{"role": "user", "content": "Hello"}]


def raw(
    strata, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict, dict]:
    """The status, headers and JSON of an answer, without a client in between."""
    connection = HTTPConnection("127.0.0.1", int(strata.url.rpartition(":")[2]), timeout=30)
    request_headers = {
        "Authorization": f"Bearer {strata.token}",
        "Content-Type": "application/json",
    }
    request_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, request_headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.headers), json.loads(answer.read())


def is_openai_error(body: dict) -> bool:
    return set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}


def test_an_unknown_key_is_401(strata, slug):
    with pytest.raises(openai.AuthenticationError) as refused:
        strata.client("strata_nothing").chat.completions.create(model=slug, messages=HELLO)
    assert refused.value.code == "invalid_api_key"
    status, headers, body = raw(strata, "GET", "/v1/models", Authorization="")
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    assert is_openai_error(body)


@pytest.mark.parametrize("name", ["gpt-4o", "no/such", "a\0b", "\ud83d", "x" * 5000])
def test_an_unknown_model_is_404(strata, name):
    body = json.dumps({"model": name, "messages": HELLO}).encode()
    status, _, answer_body = raw(strata, "POST", "/v1/chat/completions", body)
    assert (status, answer_body["error"]["param"]) in [(404, "model"), (400, "model")]
    assert answer_body["error"]["code"] in ("model_not_found", "invalid_value")


@pytest.mark.parametrize("name", ["gpt-4o", "no%2Fsuch", "no/such", "a%00b"])
def test_an_unknown_model_has_no_page(strata, name):
    status, _, answer_body = raw(strata, "GET", f"/v1/models/{name}")
    assert (status, answer_body["error"]["code"]) == (404, "model_not_found")


def test_a_stranger_gets_the_same_error_as_for_an_unknown_model(strata, slug):
    token = strata.manage("create_token", "stan", "--create")
    client = strata.client(token)
    assert slug not in {model.id for model in client.models.list()}
    for name in (slug, "nothing"):
        with pytest.raises(openai.NotFoundError) as refused:
            client.chat.completions.create(model=name, messages=HELLO)
        assert refused.value.body["message"] == (
            f"The model `{name}` does not exist or you do not have access to it."
        )


def test_a_token_of_one_project_sees_one_model(strata, slug):
    other = strata.project()
    client = strata.client(strata.manage("create_token", "admin", f"--project={slug}"))
    assert [model.id for model in client.models.list()] == [slug]
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model=other, messages=HELLO)
    assert client.chat.completions.create(model=slug, messages=HELLO).choices


@pytest.mark.parametrize("session", ["", "a"])
def test_a_viewer_and_a_token_to_read_see_models_and_are_not_answered(strata, slug, session):
    viewer = strata.manage("create_token", "vera", "--create")
    join(Api(strata.url, strata.token), slug, "vera", viewer, "viewer")
    reading = strata.manage("create_token", "admin", "--scope=read")
    for token in (viewer, reading):
        client = strata.client(token, session=session)
        assert slug in {model.id for model in client.models.list()}
        with pytest.raises(openai.PermissionDeniedError) as refused:
            client.chat.completions.create(model=slug, messages=HELLO)
        assert refused.value.code == "insufficient_permissions"
    assert strata.sessions(slug) == []
    assert strata.model.requests == []


BAD = {
    "n": 2,
    "logprobs": True,
    "top_logprobs": 3,
    "functions": [{"name": "f"}],
    "audio": {"voice": "alloy", "format": "wav"},
    "modalities": ["text", "audio"],
    "web_search_options": {},
    "temperature": 3,
    "top_p": "high",
    "max_tokens": 0,
    "stop": [1],
    "seed": "x",
    "stream": "perhaps",
    "stream_options": [],
    "tools": [{"type": "function"}],
    "tool_choice": "perhaps",
    "response_format": {"type": "xml"},
    "logit_bias": [],
}
# Options whose parts are invalid.
BAD_PARTS = [
    ("tools", [{"type": "function", "function": {"name": "f", "parameters": ["x"]}}]),
    ("tool_choice", {"type": "function", "function": {}}),
    ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}),
    ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"tools": ["f"]}}),
    ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"tools": [{"name": "f"}]}}),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "day", "schema": [1]}}),
]


@pytest.mark.parametrize(("name", "value"), [*BAD.items(), *BAD_PARTS])
def test_an_invalid_option_is_refused_by_its_name(strata, slug, say, name, value):
    with pytest.raises(openai.BadRequestError) as refused:
        say("Hello", session="a", extra_body={name: value})
    assert refused.value.param.split(".")[0] == name
    assert refused.value.type == "invalid_request_error"
    assert strata.sessions(slug) == []
    assert strata.model.requests == []


MESSAGES = [
    ([], "messages"),
    (["Hello"], "messages[0]"),
    ([{"content": "Hello"}], "messages[0].role"),
    ([{"role": "wizard", "content": "Hello"}], "messages[0].role"),
    ([{"role": ["user"], "content": "Hello"}], "messages[0].role"),
    ([{"role": "user", "content": 7}], "messages[0].content"),
    ([{"role": "user", "content": [7]}], "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
    ([{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0]"),
    (
        [{"role": "user", "content": [{"type": "image_url"}]}],
        "messages[0].content[0].image_url.url",
    ),
    ([{"role": "user", "content": "x" * 500_001}], "messages[0].content"),
    ([{"role": "assistant", "tool_calls": [{}]}], "messages[0].tool_calls[0]"),
    ([{"role": "assistant", "tool_calls": "f"}], "messages[0].tool_calls"),
    ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
]


@pytest.mark.parametrize(("messages", "place"), MESSAGES)
def test_messages_that_cannot_be_read_are_refused_by_their_place(strata, slug, messages, place):
    body = json.dumps({"model": slug, "messages": messages}).encode()
    status, _, answer_body = raw(strata, "POST", "/v1/chat/completions", body)
    assert (status, answer_body["error"]["param"]) == (400, place)
    assert is_openai_error(answer_body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"null", b'{"model": 1e999}', b"\xff"])
def test_an_invalid_request_is_400(strata, body):
    status, _, answer_body = raw(strata, "POST", "/v1/chat/completions", body)
    assert status == 400
    assert is_openai_error(answer_body)


def test_other_forms_and_methods_are_refused(strata):
    status, _, answer_body = raw(
        strata, "POST", "/v1/chat/completions", b"a=b", Content_Type="text/plain"
    )
    assert (status, is_openai_error(answer_body)) == (415, True)
    status, headers, answer_body = raw(strata, "GET", "/v1/chat/completions")
    assert (status, is_openai_error(answer_body), headers["Allow"]) == (405, True, "POST, OPTIONS")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/", "/v1/chat/completions/x"])
def test_an_unknown_route_is_404(strata, path):
    status, _, answer_body = raw(strata, "POST", path, b"{}")
    assert status == 404
    assert is_openai_error(answer_body)


def test_a_key_without_end_is_refused(say):
    with pytest.raises(openai.BadRequestError) as refused:
        say("Hello", session="x" * 201)
    assert refused.value.param == "X-Strata-Session"


def test_a_system_message_that_does_not_fit_is_refused(strata, slug, say):
    with pytest.raises(openai.BadRequestError) as refused:
        say([{"role": "system", "content": "word " * 13_000}, *HELLO], session="a")
    assert refused.value.code == "context_length_exceeded"
    assert strata.sessions(slug) == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("session", ["", "a"])
@pytest.mark.parametrize(
    ("upstream", "status", "code"),
    [
        (429, 429, "rate_limit_exceeded"),
        (401, 500, "model_not_configured"),
        (404, 500, "model_not_configured"),
        (400, 400, "request_refused"),
        (500, 502, "upstream_error"),
        (503, 503, "unavailable"),
    ],
)
def test_failures_of_the_model_are_reported(strata, say, upstream, status, code, session, stream):
    strata.model.status(upstream, retry_after=7)
    with pytest.raises(openai.APIStatusError) as failed:
        say("Hello", session=session, stream=stream)
    assert (failed.value.status_code, failed.value.code) == (status, code)
    if upstream == 429:
        assert failed.value.response.headers["Retry-After"] == "7"


def test_a_failed_reply_stays_on_the_record_and_is_asked_again(strata, slug, say):
    strata.model.status(500)
    with pytest.raises(openai.InternalServerError):
        say("Hello", session="a")
    [session] = strata.sessions(slug)
    assert [message["status"] for message in strata.messages(session)] == ["complete", "failed"]
    say("Hello", session="a")
    assert [message["status"] for message in strata.messages(session)] == [
        "complete",
        "failed",
        "complete",
    ]


def test_the_client_tries_again_by_itself(strata, slug):
    strata.model.status(503)
    client = strata.client(session="a", max_retries=1)
    answer = client.chat.completions.create(model=slug, messages=HELLO)
    assert answer.choices[0].message.content == "Scripted."


@pytest.mark.parametrize("session", ["", "a"])
def test_a_stream_that_breaks_says_so(strata, say, session):
    strata.model.half("On 3 March and then", delay=0.02)
    words = []
    with pytest.raises(openai.APIError) as failed:
        for chunk in say("When?", session=session, stream=True):
            words += [chunk.choices[0].delta.content or ""]
    assert "".join(words) == "On 3 March and then"
    assert failed.value.code == "upstream_error"


@pytest.mark.parametrize("session", ["", "a"])
def test_an_empty_reply_is_an_error(strata, say, session):
    strata.model.nothing()
    with pytest.raises(openai.InternalServerError):
        say("When?", session=session)
