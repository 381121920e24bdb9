"""The guard over Strata's own work: what recall, a prompt and a cycle ask names the project, and
would be refused if it did not. On tables as they are: it reads what is asked, not what it finds.
"""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import ForeignKey
from django.utils import timezone

from chat.models import Session
from chat.prompt.preview import preview
from memory.layers import cycle, digests
from memory.models import Block, Entry
from memory.prompt import sections
from memory.recall import RecallScope, recall, search
from projects.core.database import PreparedQuery
from tests.memory.recall_helpers import talk
from tests.server import ROOT
from tests.sharding import guard, joins
from tests.sharding.known_queries import KNOWN

pytestmark = pytest.mark.django_db

MESSAGE = "The cutover to the new database is on the third of March."
QUESTION = "When is the cutover to the new database?"


@pytest.fixture
def watched(project, owner, scripted, monkeypatch):
    """The project, in which something was said, with the guard over all that is asked from now."""
    talk(project, owner, MESSAGE)
    monkeypatch.setattr(ForeignKey, "get_extra_restriction", joins.same_project)
    # What was worked out before says nothing of that.
    monkeypatch.setattr(PreparedQuery, "compiled", property(vars(PreparedQuery)["compiled"].func))
    with connection.execute_wrapper(guard.guard):
        yield project
    guard.refused.clear()


def ask(project, user) -> list:
    return recall(RecallScope(project, user), QUESTION)


def build(project, user):
    return preview(Session.objects.create(project=project, creator=user), QUESTION, user)


def settle(project) -> cycle.CycleReport:
    return cycle.run(timezone.now() + timedelta(days=1), project)


def test_all_that_is_asked_names_the_project(watched, owner):
    assert [section.text for section in ask(watched, owner)] == [MESSAGE]
    assert "details" in {section.name for section in build(watched, owner).sections}
    assert settle(watched).summarised == 1
    assert guard.refused == []


def test_recall_that_does_not_is_refused(watched, owner, monkeypatch):
    everywhere = search._WITH_NEIGHBOURS.replace("o.project_id = %(project)s", "true")
    monkeypatch.setattr(search, "_WITH_NEIGHBOURS", everywhere)
    with pytest.raises(guard.Unbound, match=r"search.py:run_query asks for memory_chunk"):
        ask(watched, owner)


def test_a_prompt_that_does_not_is_refused(watched, owner, monkeypatch):
    def blocks(project, user):
        return Block.objects.filter(user=user)

    monkeypatch.setattr(sections, "_block_rows", blocks)
    with pytest.raises(
        guard.Unbound, match="memory/prompt/sections.py:blocks asks for memory_block"
    ):
        build(watched, owner)


def test_a_cycle_that_does_not_is_refused(watched, monkeypatch):
    monkeypatch.setattr(
        digests, "visible_nodes", lambda project: list(digests._read_nodes(Entry.objects.all()))
    )
    settle(watched)
    # Whoever settles goes on after an error.
    [refused] = guard.refused
    assert refused.startswith("memory/layers/digests.py:_read_nodes asks for memory_entry")


@pytest.mark.parametrize("place", KNOWN)
def test_every_exempt_function_exists(place):
    path, name = place.split(":")
    assert f"def {name}(" in (ROOT / path).read_text()
