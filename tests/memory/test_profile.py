"""The facts and sessions that a project holds about one member."""

import re
from datetime import timedelta
from operator import itemgetter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import Visibility
from memory import facts
from memory.facts import Statement
from projects.models import Membership
from projects.services import create_project
from tests.memory.recall_helpers import AT, talk

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/profile/"
PAGE = "/projects/billing/me/"


@pytest.fixture
def profile_project(project, owner, editor):
    """Chats of both, of which one is the editor's alone, and facts about each."""
    talk(project, owner, "The cutover is in March.")
    talk(project, editor, "It is in April.", "No, in May.", at=AT + timedelta(days=1))
    talk(project, editor, "My salary is low.", visibility=Visibility.PRIVATE)
    for user in (owner, editor):
        member = Membership.objects.select_related("project").get(project=project, user=user)
        statement = Statement("I", "prefer", f"tea ({user.username})", AT, user_id=user.pk)
        facts.create_fact(member, statement)
    return project


def test_users_get_a_profile_of_themselves(profile_project, editor, api):
    payload = api(editor).get(URL).json()
    assert (payload["user"], payload["sessions"], payload["messages"], payload["facts"]) == (
        "edgar",
        2,
        3,
        1,
    )
    assert payload["last_seen"].startswith("2026-03-02")
    assert len(payload["recent_sessions"]) == 2
    assert [fact["object"] for fact in payload["sample_facts"]] == ["tea (edgar)"]


def test_an_owner_gets_profiles_without_private_data(profile_project, owner, editor, viewer, api):
    payload = api(owner).get(URL, {"user": "edgar"}).json()
    assert (payload["sessions"], payload["messages"], payload["facts"]) == (1, 2, 0)
    assert [session_row["visibility"] for session_row in payload["recent_sessions"]] == ["project"]
    assert api(editor).get(URL, {"user": "olive"}).status_code == 404
    assert api(owner).get(URL, {"user": "nobody"}).status_code == 404


def test_strangers_get_404(profile_project, stranger, api):
    assert api(stranger).get(URL).status_code == 404


def test_the_page_tells_it_and_leads_to_export_and_forgetting(profile_project, client, editor):
    client.force_login(editor)
    page = client.get(PAGE).content.decode()
    assert "tea (edgar)" in page and "tea (olive)" not in page
    assert "/projects/billing/export/?mine" in page
    assert "/projects/billing/memory/forget/?user=edgar" in page


def test_a_viewer_without_messages_gets_an_empty_profile(profile_project, client, viewer):
    client.force_login(viewer)
    page = client.get(PAGE).content.decode()
    assert "never" in page
    assert "memory/forget" not in page


def test_it_takes_few_queries(profile_project, client, editor, django_assert_max_num_queries):
    client.force_login(editor)
    client.get(PAGE)
    with django_assert_max_num_queries(19):
        client.get(PAGE)


def test_the_page_reads_sessions_by_id_after_an_import(client, editor):
    """With statistics from before the import, which say that the project has no chats."""
    with connection.cursor() as cursor:
        # Pages of rows that earlier tests rolled back would change the plan.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("TRUNCATE projects_project CASCADE")
        cursor.execute("ANALYZE chat_session, chat_message")
        big = create_project(editor, name="Imported")
        for number in range(60):
            talk(big, editor, *(f"Step {number}, part {part}." for part in range(5)))
        client.force_login(editor)
        with CaptureQueriesContext(connection) as queries:
            client.get("/projects/imported/me/")
        [query] = [sql for sql in map(itemgetter("sql"), queries) if sql and "MAX(" in sql]
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}")
        [plan] = cursor.fetchone()[0]
    removed = re.findall(r"'Rows Removed by Join Filter': (\d+)", str(plan))
    # Comparing each message with each chat would remove thousands.
    assert sum(map(int, removed)) < 60
