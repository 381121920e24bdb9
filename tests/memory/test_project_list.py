"""The list of projects: chats, last activity and the size of the memory."""

from datetime import UTC, datetime

import pytest

from chat.models import Session, Visibility
from memory.layers.bank_cache import rendered_bank
from projects.models import Project
from projects.services import create_project
from tests.chat.pages.page_content import queries
from tests.html import compact

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(client):
    def get(user) -> list[str]:
        client.force_login(user)
        page = compact(client.get("/").content.decode())
        return page.partition('<ul class="rows">')[2].partition("</ul>")[0].split("</li>")[:-1]

    return get


def test_a_project_shows_its_chats_members_and_last_activity(rows, owner, editor, chat):
    Session.objects.update(last_activity_at=datetime(2026, 3, 12, 10, tzinfo=UTC))
    [row] = rows(owner)
    assert "1 chat ·" in row
    assert "last active 12 Mar 2026" in row
    assert "2 members · Owner" in row
    Session.objects.create(project=chat.project, creator=editor)
    assert "2 chats ·" in rows(owner)[0]


def test_private_chats_of_others_are_not_counted(rows, owner, editor, chat):
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert "0 chats" in rows(owner)[0] and "last active" not in rows(owner)[0]
    assert "1 chat " in rows(editor)[0]


def test_the_memory_is_a_bar_in_the_budget(rows, owner, project, entry):
    assert "1 memory" in rows(owner)[0] and "<meter" not in rows(owner)[0]
    tokens = rendered_bank(project).tokens
    [row] = rows(owner)
    assert f'max="2000" value="{tokens}"' in row
    assert f"memory: {tokens} of 2,000 tokens" in row
    Project.objects.update(memory_enabled=False)
    [row] = rows(owner)
    assert "memory off" in row and "<meter" not in row


def test_a_project_without_entries_has_no_memories_yet(rows, owner, project):
    assert "no memories yet" in rows(owner)[0]


def test_instructions_are_not_shown(rows, owner, project):
    Project.objects.update(instructions="You help {{ project.name }}.")
    assert "You help" not in rows(owner)[0]


def test_the_latest_project_comes_first(rows, owner, chat):
    other = create_project(owner, name="Zebra")
    assert [name in row for row, name in zip(rows(owner), ("Zebra", "Billing"), strict=True)]
    Session.objects.create(
        project=other, creator=owner, last_activity_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    first, last = rows(owner)
    assert "Billing" in first and "Zebra" in last


def test_more_projects_take_no_more_queries(client, owner, chat):
    client.force_login(owner)
    client.get("/")
    few = queries(client, "/")
    for number in range(9):
        project = create_project(owner, name=f"Project {number}")
        Session.objects.create(project=project, creator=owner)
    assert queries(client, "/") == few <= 5
