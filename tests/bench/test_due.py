"""The cost of a memory cycle grows with the due work, not with the stored rows."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from chat.conversations.messages import draft, post_messages
from chat.models import Session
from memory.layers import cycle
from memory.models import Cursor, Entry, Nudge
from projects.models import Project
from projects.services import create_project

pytestmark = pytest.mark.timeout(1_800)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PROJECTS, DUE, LOOKS = 1_000, 100, 60


def fill(sessions: int) -> None:
    """Sessions that are all remembered, spread over the projects, with their cursors, entries and
    ladders; in addition to those that are there.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO chat_session (id, project_id, kind, title, title_by_hand, pinned,
                visibility, remembered, status, last_seq, version, created_at, last_activity_at)
            SELECT gen_random_uuid(), id, 'chat', 'A talk', false, false, 'project', true,
                'active', 8, 8, %(at)s, %(at)s
            FROM projects_project CROSS JOIN generate_series(1, %(each)s)
            """,
            {"at": NOW - timedelta(days=2), "each": sessions // PROJECTS},
        )
        cursor.execute(
            """
            INSERT INTO memory_cursor (session_id, project_id, summarised_through,
                unsummarised_messages, unsummarised_tokens, failures, last_error)
            SELECT id, project_id, 8, 0, 0, 0, '' FROM chat_session ON CONFLICT DO NOTHING
            """
        )
        cursor.execute(
            """
            INSERT INTO memory_entry (id, project_id, granularity, period_key, zone, session_id,
                first_seq, last_seq, summary, tokens, message_count, first_source_at,
                last_source_at, state, pinned, withheld, waits_because, note, losses, particulars,
                revision, sources_hash, written_by, written_at)
            SELECT gen_random_uuid(), project_id, 'conversation', '2026-05-30', 'UTC', id, 1, 8,
                '- Something was said.', 12, 8, created_at, created_at, 'live', false, false, '',
                '', '[]', 0, 1, '', 'extractive', created_at
            FROM chat_session WHERE NOT EXISTS (
                SELECT FROM memory_entry WHERE session_id = chat_session.id)
            """
        )
        cursor.execute("ANALYZE")


@pytest.fixture
def projects(owner):
    Project.objects.bulk_create(
        Project(name=f"P{number}", slug=f"p{number}") for number in range(PROJECTS)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_ladder (project_id, failures, last_error)"
            " SELECT id, 0, '' FROM projects_project"
        )


def make_due() -> None:
    """DUE sessions wait to be summarised, and as many other projects to be looked through."""
    picked = list(Cursor.objects.order_by("pk")[:DUE])
    Cursor.objects.filter(pk__in=[item.pk for item in picked]).update(unsummarised_messages=4)
    others = Project.objects.exclude(pk__in=[item.project_id for item in picked])
    Nudge.objects.bulk_create(Nudge(project=other_item) for other_item in others[:DUE])


def look(timed) -> list[float]:
    cycle.due(NOW)
    return [timed(lambda: cycle.due(NOW)) for _ in range(LOOKS)]


@pytest.mark.django_db
def test_finding_what_is_due_costs_no_more_with_ten_times_as_much_there(
    projects, timed, compare, django_assert_num_queries
):
    fill(10_000)
    make_due()
    few = look(timed)
    fill(90_000)
    with django_assert_num_queries(1):
        due = cycle.due(NOW)
    assert (len(due.sessions), len(due.projects)) == (DUE, DUE)
    assert Session.objects.count() == Entry.objects.count() == 100_000
    ratio = compare("finding 200 due: among 10,000 sessions, 100,000", few, look(timed), 1.3)
    assert ratio <= 1.3


def talk(owner, sessions: int, name: str) -> Project:
    """A project with so many sessions that wait to be summarised, ten to a day."""
    project = create_project(owner, name=name)
    for number in range(sessions):
        at = NOW - timedelta(days=1 + number // 10, minutes=number % 10)
        session = Session.objects.create(
            project=project, creator=owner, created_at=at, last_activity_at=at
        )
        text = f"Build {number} takes {number % 90} minutes and is owned by team {number % 7}."
        post_messages(session, [draft(text, author=owner, created_at=at) for _ in range(4)])
    return project


# Not in one transaction: thousands of savepoints in one would slow down what comes last.
@pytest.mark.django_db(transaction=True)
def test_ten_times_the_work_costs_at_most_eleven_times_as_much(owner, timed, compare):
    once, tenfold = [], []
    for turn in range(3):
        project = talk(owner, 100, f"Few {turn}")
        once.append(timed(lambda project=project: cycle.run(NOW, project)))
        project = talk(owner, 1_000, f"Many {turn}")
        tenfold.append(timed(lambda project=project: cycle.run(NOW, project)))
    assert compare("a cycle: 100 conversations, 1,000", once, tenfold, 11) <= 11
