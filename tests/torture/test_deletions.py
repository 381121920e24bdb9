"""Projects are deleted while everything works on them: nothing fails, and nothing is left."""

import time
from datetime import UTC, datetime, timedelta
from queue import Empty

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import connection

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from config.postgres import server
from memory.models import Webhook
from projects.models import Project
from projects.services import create_project
from tests.conftest import DATA_DIR
from tests.torture import demolition

pytestmark = pytest.mark.django_db(transaction=True)

# Two of a kind get into each other's way, too.
PROCESSES = ("cycle", "cycle", "index", "deliver", "import", "ask")
# There are so many projects at a time.
STANDING = 3
SESSIONS, MESSAGES = 6, 6
LONG_AGO = datetime(2026, 1, 5, 10, tzinfo=UTC)


def server_log() -> str:
    return (server.database_folder(DATA_DIR) / "server.log").read_text(errors="replace")


def build(owner, number: int, url: str) -> Project:
    """A project whose memory has work in all layers, and a webhook that waits for events."""
    project = create_project(owner, name=f"Project {number}", bank_max_tokens=100, idle_minutes=1)
    Webhook.objects.create(project=project, url=url, events=["message.posted", "entry.created"])
    for day in range(SESSIONS):
        at = LONG_AGO + timedelta(days=day)
        session = create_session(project, owner, title=f"Day {day}", last_activity_at=at)
        drafts = [
            draft(f"On day {day} step {step} went well.", author=owner, created_at=at)
            for step in range(MESSAGES)
        ]
        post_messages(session, drafts)
    return project


def test_deleting_a_project_at_work_fails_nothing_and_leaves_nothing(
    crew, scale, tally, chance, receiver, api, caplog
):
    owner = get_user_model().objects.create_user("olive")
    client = api(owner)
    caplog.set_level("INFO", logger="projects.services")
    over, results = crew.Event(), crew.Queue()
    deadlocks_before = server_log().count("deadlock detected")
    workers = [
        crew.Process(target=demolition.repeat, args=(kind, over, results)) for kind in PROCESSES
    ]
    standing = [build(owner, number, f"{receiver.url}/hook") for number in range(STANDING)]
    for worker in workers:
        worker.start()
    deletions, slowest_s = scale(200, 10), 0.0
    try:
        for number in range(deletions):
            time.sleep(chance.uniform(0.1, 0.5))
            project = standing.pop(0)
            began = time.monotonic()
            response = client.delete(f"/api/v1/projects/{project.slug}/")
            slowest_s = max(slowest_s, time.monotonic() - began)
            assert response.status_code == 204, response.content
            standing.append(build(owner, STANDING + number, f"{receiver.url}/hook"))
    finally:
        over.set()
        failures, done = collect(results, len(PROCESSES))
        for worker in workers:
            worker.join(60)
            worker.kill()
    print("\n".join(failures))
    tally("projects deleted", deletions)
    tally("deletions tried again", sum("project_deletion_retried" in it for it in caplog.messages))
    tally("milliseconds of the slowest deletion", round(slowest_s * 1000))
    for kind, times in done.items():
        tally(f"rounds of {kind}", times)
    assert not failures, f"{len(failures)} failed, such as:\n{failures[0][-6000:]}"
    assert server_log().count("deadlock detected") == deadlocks_before
    for project in standing:
        assert client.delete(f"/api/v1/projects/{project.slug}/").status_code == 204
    assert rows_left() == {}


def collect(results, processes: int) -> tuple[list[str], dict[str, int]]:
    """Return the failures of all processes, and how often each kind of work was done."""
    failures: list[str] = []
    done: dict[str, int] = {}
    ended = 0
    while ended < processes:
        try:
            kind, result = results.get(timeout=120)
        except Empty:
            raise AssertionError(f"Only {ended} processes ended. {failures[:1]}") from None
        if isinstance(result, int):
            done[kind] = done.get(kind, 0) + result
            ended += 1
        else:
            failures.append(f"{kind}: {result}")
    return failures, done


def rows_left() -> dict[str, int]:
    """Return the rows of projects that are left, by table; there is no project any more."""
    assert not Project.objects.exists()
    counts = {}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            names = {field.name for field in model._meta.concrete_fields}
            if "project" in names:
                table = connection.ops.quote_name(model._meta.db_table)
                cursor.execute(f"SELECT count(*) FROM {table} WHERE project_id IS NOT NULL")
                counts[model._meta.label] = cursor.fetchone()[0]
    assert len(counts) > 20
    return {label: count for label, count in counts.items() if count}
