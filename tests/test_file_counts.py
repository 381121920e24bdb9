"""How many product files one use of Strata enters, counted over all threads of the process.

A reader who follows a message, a cycle or a forget request opens these files. To see them:
`pytest tests/test_file_counts.py -s`.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Session, Visibility
from chat.prompt import builder
from config.postgres.server import install_broker

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(f"{ROOT / app}/" for app in ("config", "projects", "chat", "memory"))


@contextmanager
def entered_files(title: str) -> Iterator[set[str]]:
    """Collect the product files of which a function runs inside the block, imports aside."""
    files: set[str] = set()

    def record(frame, event, _) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PRODUCT) and frame.f_code.co_name != "<module>":
            files.add(path.removeprefix(f"{ROOT}/"))

    before = sys.getprofile()
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield files
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        print(f"\n{title}: {len(files)} files", *sorted(files), sep="\n  ")


@pytest.fixture(autouse=True)
def broker(settings) -> None:
    """Without its tables, each task that is sent would log an error."""
    install_broker(settings.CELERY_BROKER_URL)


@pytest.fixture
def chat_session(project, owner):
    return create_session(project, owner, visibility=Visibility.PROJECT)


def talk(chat_session, owner, at) -> None:
    texts = [
        ("user", "When is the cutover of billing to Postgres?"),
        ("assistant", "On 3 March, with a replica that stays for seven days."),
        ("user", "Ana decides who watches it. Please write the checklist."),
    ]
    post_messages(
        chat_session,
        [draft(text, role=role, author=owner, created_at=at) for role, text in texts],
    )
    Session.objects.filter(pk=chat_session.pk).update(created_at=at, last_activity_at=at)


def test_a_message_to_a_stored_reply_enters_at_most_66_files(api, owner, chat_session, scripted):
    url = f"/api/v1/sessions/{chat_session.pk}/messages/"
    client = api(owner)
    # The first request imports modules and fills caches.
    client.post(url, {"content": "Hello"}, format="json")
    with entered_files("A message to a stored reply") as files:
        answer = client.post(url, {"content": "When is the cutover?"}, format="json")
    assert answer.json()["reply"]["status"] == "complete"
    assert len(files) <= 66


def test_an_idle_conversation_to_a_prompt_enters_at_most_69_files(project, owner, chat_session):
    def prompt() -> str:
        later = create_session(project, owner, visibility=Visibility.PROJECT)
        [question] = post_messages(later, [draft("When is the cutover?", author=owner)])
        return str(builder.build(builder.Turn(later, question)))

    now = timezone.now()
    talk(chat_session, owner, now - timedelta(hours=2))
    # The first prompt of a process compiles its queries.
    prompt()
    with entered_files("An idle conversation to a prompt") as files:
        call_command("memory_cycle", project=project.slug, now=now)
        text = prompt()
    assert "billing to Postgres" in text, text
    assert len(files) <= 69


def test_a_forget_request_enters_at_most_30_files(api, owner, project, chat_session):
    talk(chat_session, owner, timezone.now() - timedelta(hours=2))
    client, url = api(owner), f"/api/v1/projects/{project.slug}/forget/"
    # The first request imports modules and fills caches.
    client.get("/api/v1/projects/")
    with entered_files("A forget request") as files:
        answer = client.post(url, {"session": chat_session.pk}, format="json")
    assert answer.json()["removed"]["messages"] == 3
    assert len(files) <= 30
