"""Work on projects that are deleted meanwhile, each kind in a process of its own.

Each process puts what failed into a queue, and at its end how often it worked.
"""

import io
import json
import os
import random
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_network
from multiprocessing.synchronize import Event
from typing import Any

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.conf import settings
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient

from chat.importers import jobs
from chat.models import Session
from memory import webhooks
from memory.layers import cycle
from memory.recall import indexing
from projects.models import Project, Token

# The answers to a request for a project that may be gone by now.
EXPECTED_STATUSES = (200, 201, 202, 204, 404, 409)
IMPORTED_LINES = 50


def repeat(kind: str, over: Event, results: Any) -> None:
    """Repeat one kind of work until it is `over`."""
    os.environ["PGAPPNAME"] = kind
    settings.OUTBOUND_ALLOW = [ip_network("127.0.0.1")]
    settings.SYSTEM_MODEL = "extractive"
    done = 0
    while not over.is_set():
        try:
            for failure in WORK[kind]():
                results.put((kind, failure))
        except Exception:
            results.put((kind, traceback.format_exc()))
        done += 1
        time.sleep(random.uniform(0, 0.02))
    results.put((kind, done))
    # What is in the queue is sent before the process ends.
    results.close()
    results.join_thread()


def run_cycle() -> list[str]:
    cycle.run(datetime.now(UTC))
    return []


def index() -> list[str]:
    indexing.catch_up(seconds=5)
    return []


def deliver() -> list[str]:
    for webhook_id in webhooks.due():
        webhooks.deliver(webhook_id, budget_s=1)
    return []


def import_file() -> list[str]:
    """Upload a file with five chats and import it, as a task does."""
    project = Project.objects.order_by("?").first()
    if project is None:
        return []
    lines = [
        json.dumps({"session": f"{number % 5}", "role": "user", "content": f"Line {number}."})
        for number in range(IMPORTED_LINES)
    ]
    upload = io.BytesIO("\n".join(lines).encode())
    upload.name = "chats.jsonl"
    path = f"/api/v1/projects/{project.slug}/imports/"
    response = client().post(path, {"file": upload}, format="multipart")
    if response.status_code < 300:
        jobs.run_import(response.json()["id"])
    return failures_of(response)


def ask() -> list[str]:
    """Send requests like a member who does not know that the project is deleted."""
    session = Session.objects.order_by("?").select_related("project").first()
    if session is None:
        return []
    project, chat = f"/api/v1/projects/{session.project.slug}/", f"/api/v1/sessions/{session.pk}/"
    message = {"content": "The cutover is in March.", "reply": False}
    requests: list[tuple[str, str, object]] = [
        ("post", f"{chat}messages/", message),
        ("post", f"{project}sessions/", {"title": "New"}),
        ("patch", chat, {"title": "Renamed"}),
        ("get", f"{project}memory/entries/", None),
        ("post", f"{project}forget/", {"session": str(session.pk)}),
        ("get", f"{project}recall/?q=cutover", None),
        ("put", f"{project}blocks/rules/", {"content": "Be brief."}),
    ]
    return [
        failure
        for method, path, body in random.sample(requests, 4)
        for failure in failures_of(getattr(client(), method)(path, body, format="json"))
    ]


@cache
def client() -> APIClient:
    """Return a client that answers 500 instead of raising, as a server does."""
    api_client = APIClient(raise_request_exception=False, SERVER_NAME="localhost")
    _, secret = Token.issue(get_user_model().objects.get(username="olive"))
    api_client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return api_client


def failures_of(response) -> list[str]:
    if response.status_code in EXPECTED_STATUSES:
        return []
    request = response.wsgi_request
    cause = getattr(response, "exc_info", None)
    lines = traceback.format_exception(*cause) if cause else [repr(response.content[:300])]
    return [f"{request.method} {request.path}: {response.status_code}\n{''.join(lines)}"]


WORK: dict[str, Callable[[], list[str]]] = {
    "cycle": run_cycle,
    "index": index,
    "deliver": deliver,
    "import": import_file,
    "ask": ask,
}
