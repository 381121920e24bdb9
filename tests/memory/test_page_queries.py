"""How many questions each page puts to the database, and that none puts more when more is there."""

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from chat.conversations.messages import draft, post_messages
from chat.models import Session
from memory import demo
from memory.models import Entry, Fact, Webhook
from tests.chat.pages.page_content import queries

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
# Signing in and the browser's session are two of each; when it was last here is noted before.
QUERIES = {
    "about-me": 15,
    "account": 7,
    "archived chats": 7,
    "chats with a word": 9,
    "entry of a chat": 16,
    "entry of a period": 16,
    "fact": 12,
    "facts": 12,
    "facts timeline": 7,
    "found": 14,
    "imports": 5,
    "jump": 8,
    "memory": 16,
    "memory as a tree": 28,
    "memory then": 13,
    "memory-activity": 17,
    "memory-blocks": 5,
    "memory-forget": 5,
    "memory-review": 7,
    "memory-search": 7,
    "message-edit": 7,
    "message-revisions": 7,
    "notes": 6,
    "overview": 24,
    "project": 19,
    "project-settings": 12,
    "projects": 5,
    "session": 14,
    "session-keep": 6,
    "session-prompt": 22,
    "webhook": 6,
    "webhooks": 5,
    "welcome": 4,
}


def latest(project) -> Session:
    return Session.objects.chats().filter(project=project).order_by("-last_activity_at")[0]


def say(project, owner, chats: int, messages: int) -> None:
    """Adds so many chats, and so many messages to the one that was the latest."""
    long = latest(project)
    for number in range(chats):
        chat = Session.objects.create(project=project, creator=owner, title=f"Talk {number}")
        at = NOW - timedelta(days=1)
        texts = [draft(f"Word {index}.", author=owner, created_at=at) for index in range(4)]
        post_messages(chat, texts)
    post_messages(long, [draft(f"More {index}.", author=owner) for index in range(messages)])


@pytest.fixture
def project(owner):
    """Two months of talk, and some that is not remembered yet in a chat of several pages."""
    demo_project = demo.create_demo(owner, NOW)
    say(demo_project, owner, 2, 60)
    return demo_project


@pytest.fixture
def pages(project) -> dict[str, str]:
    """The path of each page by its name."""
    slug = project.slug
    chat = latest(project)
    message_id = chat.messages.order_by("seq").first().pk
    digest = Entry.objects.filter(granularity="week").first().pk
    spoken = Entry.objects.filter(granularity="conversation").first().pk
    fact = Fact.objects.filter(subject="billing").first().pk
    hook = Webhook.objects.create(project=project, url="https://example.org/hook", events=[])
    of_project = (
        "project overview notes imports about-me memory memory-review memory-activity "
        "memory-blocks memory-forget memory-search facts project-settings webhooks"
    )
    paths = {name: reverse(name, args=[slug]) for name in of_project.split()}
    return paths | {
        "webhook": reverse("webhook", args=[slug, hook.pk]),
        "account": reverse("account"),
        "projects": "/?all",
        "welcome": reverse("welcome"),
        "session": reverse("session", args=[slug, chat.pk]),
        "session-prompt": reverse("session-prompt", args=[slug, chat.pk]),
        "session-keep": reverse("session-keep", args=[slug, chat.pk]),
        "message-edit": reverse("message-edit", args=[message_id]),
        "message-revisions": reverse("message-revisions", args=[message_id]),
        "archived chats": f"{paths['project']}?archived",
        "chats with a word": f"{paths['project']}?q=replica",
        "found": f"{paths['memory-search']}?q=wheelchair",
        "memory then": f"{paths['memory']}?at=2026-02-09",
        "memory as a tree": f"{paths['memory']}?tree",
        "entry of a period": reverse("entry", args=[slug, digest]),
        "entry of a chat": reverse("entry", args=[slug, spoken]),
        "fact": reverse("fact", args=[slug, fact]),
        "facts timeline": f"{paths['facts']}?timeline",
        "jump": reverse("jump", args=[slug]) + "?q=wheelchair",
    }


def test_each_page_puts_as_many_as_it_is_known_to_and_no_more_where_more_is(
    client, owner, project, pages
):
    client.force_login(owner)
    look_at(client, pages)
    assert {name: queries(client, path) for name, path in pages.items()} == QUERIES
    say(project, owner, 60, 300)
    look_at(client, pages)
    more = {name: queries(client, path) for name, path in pages.items()}
    assert {name: count for name, count in more.items() if count > QUERIES[name]} == {}


def look_at(client, pages) -> None:
    """What is worked out once, such as an unread mark, is worked out by the first look."""
    for path in pages.values():
        client.get(path)
