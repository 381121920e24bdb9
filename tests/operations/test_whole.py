"""Logs, metrics and traces of a running Strata, and the data that they must not contain."""

import re

import httpx2
import pytest

from tests.operations.conftest import Strata, until
from tests.receiver import Reply
from tests.scripted import Answer

CANARY = "canary7"
WORD = re.compile(r"canary7", re.IGNORECASE)


@pytest.fixture(scope="session")
def worked(strata: Strata) -> str:
    """The id of a request that did all that there is to do, with a canary in every text."""
    api, model = strata.api, strata.model
    api.post("/api/v1/projects/", json={"name": CANARY, "slug": "billing"}).raise_for_status()
    begun = api.post("/api/v1/projects/billing/sessions/", json={"title": CANARY}).json()
    session = f"/api/v1/sessions/{begun['id']}"
    hook = {"url": f"{strata.receiver.url}/{CANARY}", "events": ["message.posted"]}
    api.post("/api/v1/projects/billing/webhooks/", json=hook).raise_for_status()
    strata.receiver.reply = Reply(500, {}, CANARY.encode())

    model.say(f"Answer of {CANARY}")
    say(api, session)
    for failure in (
        Answer(f"Refused because of {CANARY}", status=400),
        Answer(f"Down with {CANARY}", status=500),
        Answer(f"<html>{CANARY}", ending="garbage"),
        Answer(f"{CANARY} and", ending="breaks"),
    ):
        model.queue(failure)
        say(api, session)
    api.get("/api/v1/projects/billing/recall/", params={"q": CANARY}).raise_for_status()
    api.get(f"/api/v1/projects/{CANARY}/")
    api.get(f"/{CANARY}?{CANARY}={CANARY}")
    api.post(f"{session}/messages/", content=f'{{"content": {CANARY}')
    api.post("/api/v1/projects/", headers={"Authorization": f"Bearer {CANARY}"}, json={})
    api.post("/accounts/login/", data={"login": CANARY, "password": CANARY})
    for name in (f"{CANARY}.jsonl", f"{CANARY}.zip", f"{CANARY}.json"):
        file = {"file": (name, f'{{"role": "{CANARY}", {CANARY}'.encode())}
        api.post("/api/v1/projects/billing/imports/", files=file)
    request_body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    request_body |= {"params": {"name": CANARY, "arguments": {CANARY: CANARY}}}
    accept = {"Accept": "application/json, text/event-stream"}
    scoped = strata.installation.manage("create_token", "admin", "--project", "billing")
    scoped = {"Authorization": f"Bearer {scoped}"} | accept
    api.post("/mcp", json=request_body, headers=scoped | {"X-Request-ID": "by-mcp"})
    api.post("/mcp", content=f"{{{CANARY}", headers=scoped)

    model.queue(Answer(f"No {CANARY}", status=503))
    headers = {"X-Request-ID": "from-the-proxy.1"}
    answer = api.post(f"{session}/summarize/", headers=headers)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (202, "from-the-proxy.1")
    until(lambda: task_lines(strata, "from-the-proxy.1"), "the task of the request")
    until(lambda: strata.lines("webhook_delivery_failed"), "a failed delivery")
    return "from-the-proxy.1"


def say(api: httpx2.Client, session: str) -> None:
    with api.stream(
        "POST",
        f"{session}/messages/",
        json={"content": f"Tell me of {CANARY}"},
        headers={"Accept": "text/event-stream"},
    ) as answer:
        assert answer.status_code == 200, answer.read()
        answer.read()


def task_lines(strata: Strata, request_id: str) -> list[dict]:
    return [
        line
        for line in strata.lines("memory_failed") + strata.lines("task_succeeded")
        if line.get("request_id") == request_id
    ]


def sample(page: str, start: str) -> float:
    """The sum of the samples of /metrics that begin so."""
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))


def test_metrics_tell_of_every_process(strata, worked):
    name = 'strata_task_duration_seconds_count{outcome="success",task="memory.tasks.summarise'
    until(lambda: sample(strata.metrics(), name), "a task of a worker's child in /metrics")
    page = strata.metrics()
    reply = 'kind="reply",model="openai-chat:scripted"'
    calls = f"strata_model_call_duration_seconds_count{{{reply},outcome="
    assert sample(page, f'{calls}"success"') == 1
    assert sample(page, f'{calls}"request_refused"') == 1
    assert sample(page, f"strata_model_first_token_seconds_count{{{reply}}}") >= 1
    assert sample(page, f'strata_model_tokens_total{{direction="output",{reply}}}') > 0
    assert sample(page, 'strata_failures_total{event="reply_failed"}') >= 3
    assert sample(page, 'strata_failures_total{event="webhook_delivery_failed"}') >= 1
    view = (
        'django_http_requests_latency_seconds_by_view_method_count{method="GET",view="api-recall"}'
    )
    assert sample(page, view) == 1
    assert sample(page, "strata_recall_duration_seconds_count") >= 1
    assert sample(page, 'django_http_responses_total_by_status_view_method_total{method="POST"') > 5
    assert 'view="mcp"' in page
    assert 'strata_queue_tasks{queue="memory"}' in page
    assert sample(page, "strata_open_streams") == 0
    assert sample(page, "strata_collector_failed{") == 0
    assert not WORD.search(page)


def test_no_log_line_contains_message_text(strata, worked):
    written = strata.logs()
    for event in ("request_finished", "reply_failed", "webhook_delivery_failed", "memory_failed"):
        assert strata.lines(event), event
    lines = [line for line in written.splitlines() if WORD.search(line)]
    assert lines == []
    for secret in ("metrics_token", "secret_key"):
        assert (strata.installation.data_dir / secret).read_text() not in written
    assert strata.token not in written


def test_every_line_is_json_and_of_one_form(strata, worked):
    for line in strata.logs().splitlines():
        assert line.startswith('{"timestamp": "'), line
    [request_line] = [
        item for item in strata.lines("request_finished") if item["request_id"] == worked
    ]
    assert request_line["request"] == "POST /api/v1/sessions/<uuid:pk>/summarize/"
    assert request_line["code"] == 202 and request_line["user_id"] == 1
    assert (
        request_line["project_id"]
        and request_line["session_id"]
        and request_line["duration_ms"] > 0
    )
    [by_mcp] = [item for item in strata.lines("request_finished") if item["request_id"] == "by-mcp"]
    assert by_mcp["request"] == "POST /mcp" and by_mcp["code"] == 200
    assert (by_mcp["user_id"], by_mcp["project_id"]) == (1, request_line["project_id"])
    [failed] = [item for item in strata.lines("memory_failed") if item["request_id"] == worked]
    assert failed["task"] == "memory.tasks.summarise_session"
    assert failed["project_id"] == request_line["project_id"]


def test_a_trace_goes_from_the_request_to_its_task(strata, worked):
    spans = strata.collector.spans
    name = "memory.tasks.summarise_session"
    task = until(lambda: next((span for span in spans if span.name == name), None), "a task's span")
    request = until(
        lambda: next((span for span in spans if span.id == task.parent), None), "its request's span"
    )
    assert request.name == "POST /api/v1/sessions/<uuid:pk>/summarize/"
    assert (request.part, task.part, request.trace) == ("web", "worker", task.trace)
    inside = [span for span in spans if span.trace == task.trace]
    assert any(span.name.startswith("SELECT chat_session") for span in inside)
    [call] = [span for span in inside if span.name == "model call"]
    assert call.about == {
        "model": "openai-chat:scripted",
        "kind": "conversation",
        "outcome": "unavailable",
    }


def test_an_mcp_request_is_traced_with_its_queries(strata, worked):
    spans = strata.collector.spans
    name = "POST /mcp"
    span = until(lambda: [item for item in spans if item.name == name][1:], "two spans of MCP")[0]
    assert span.part == "web" and span.about["http.response.status_code"] == "400"
    first = next(item for item in spans if item.name == name)
    assert first.about["http.response.status_code"] == "200"
    inside = [item.name for item in spans if item.trace == first.trace]
    assert "SELECT projects_token" in inside


def test_no_trace_contains_message_text(strata, worked):
    assert strata.collector.received
    for body in strata.collector.received:
        assert CANARY.encode() not in body
