"""Pages in a small project and in a large one: time at the server, and bytes."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from chat.conversations.messages import draft, post_messages
from chat.models import Role, Session
from memory.layers import cycle
from memory.recall import indexing
from projects.models import Project
from projects.services import create_project
from tests.bench import generated_text

pytestmark = [pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
FEW, MANY = 10, 1_000
ROUNDS = 25
LARGEST = 150_000  # bytes of a chat's page
PAGES = (
    *("overview", "project", "memory", "memory-search", "facts", "memory-blocks"),
    *("memory-activity", "memory-review", "about-me", "project-settings"),
)


@pytest.fixture
def small(owner) -> Project:
    return filled(owner, FEW)


@pytest.fixture
def large(owner) -> Project:
    return filled(owner, MANY)


def filled(owner, messages: int) -> Project:
    """A project with so many messages in one chat, and as many in chats of ten."""
    project = create_project(owner, name=f"With {messages}", system_model="extractive")
    talks = [*generated_text.talks(1, messages, messages), *generated_text.talks(2, messages, 10)]
    for number, talk in enumerate(talks):
        at = AT + timedelta(hours=number)
        session = Session.objects.create(
            project=project,
            creator=owner,
            title=f"Chat {number}",
            created_at=at,
            last_activity_at=at,
        )
        roles = (Role.USER, Role.ASSISTANT)
        post_messages(
            session,
            [
                draft(text, author=owner, role=roles[place % 2], created_at=at)
                for place, text in enumerate(talk)
            ],
        )
    indexing.catch_up()
    cycle.run(AT + timedelta(days=90), project)
    return project


def paths(project: Project) -> dict[str, str]:
    chat = project.sessions.order_by("created_at").first()
    urls = {name: reverse(name, args=[project.slug]) for name in PAGES}
    urls["memory-search"] += "?q=who+owns+the+plan"
    return {"a chat": reverse("session", args=[project.slug, chat.pk])} | urls


def test_a_large_project_has_quick_pages(small, large, owner, compare, report_figures):
    client = Client()
    client.force_login(owner)
    for name, path in paths(small).items():
        other = paths(large)[name]
        responses = {path: client.get(path), other: client.get(other)}
        assert {answer.status_code for answer in responses.values()} == {200}
        seconds: dict[str, list[float]] = {path: [], other: []}
        for _ in range(ROUNDS):
            for sample in seconds:
                began = time.perf_counter()
                client.get(sample)
                seconds[sample].append(time.perf_counter() - began)
        compare(f"{name}: {FEW} messages, {MANY}", seconds[path], seconds[other])
        size = len(responses[other].content)
        report_figures("    bytes of each", len(responses[path].content), size)
        if name == "a chat":
            assert size < LARGEST
