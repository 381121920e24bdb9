"""A project chooses whose messages search indexes, and how short they may be."""

import pytest

from memory.models import Chunk, IndexCursor
from memory.recall import indexing
from tests.memory.recall_helpers import recalled_texts, say, talk

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/"
CUTOVER = "The cutover is on the third of March."
ANSWER = "The platform team owns the cutover."


def indexed() -> set[str]:
    return set(Chunk.objects.values_list("text", flat=True))


def change(api, owner, **settings):
    answer = api(owner).patch(URL, settings, format="json")
    assert answer.status_code == 200, answer.json()
    indexing.catch_up()
    return answer.json()


def test_the_roles_that_are_indexed(project, owner, api):
    session = talk(project, owner, CUTOVER)
    say(session, None, ANSWER, role="assistant")
    assert indexed() == {CUTOVER, ANSWER}
    assert change(api, owner, indexed_roles=["user"])["indexed_roles"] == ["user"]
    assert indexed() == {CUTOVER}
    assert recalled_texts(project, owner, "Who owns the cutover?") == [CUTOVER]
    change(api, owner, indexed_roles=["assistant"])
    assert indexed() == {ANSWER}


def test_the_minimum_length(project, owner, api):
    talk(project, owner, CUTOVER, "Husum harbour")
    assert indexed() == {CUTOVER}
    change(api, owner, min_index_chars=5)
    assert indexed() == {f"{CUTOVER}\nHusum harbour"}


def test_short_tasks_are_found_in_the_projects_language(project, owner, api):
    change(api, owner, search_language="german")
    talk(project, owner, "Kaufe Milch")
    assert indexed() == {"Kaufe Milch"}


@pytest.mark.parametrize("roles", [[], ["tool"], ["user", "user"], "user", None])
def test_wrong_roles_are_refused(project, owner, api, roles):
    answer = api(owner).patch(URL, {"indexed_roles": roles}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == ["indexed_roles"]


def test_only_a_change_is_indexed_again(project, owner):
    talk(project, owner, CUTOVER)
    project.name = "Bills"
    project.save()
    project.save(update_fields=["indexed_roles"])
    assert not IndexCursor.objects.due().exists()
    project.min_index_chars = 10
    project.save()
    assert IndexCursor.objects.due().count() == 1


def test_an_owner_changes_them_on_the_memory_tab(client, project, owner):
    client.force_login(owner)
    page = client.get("/projects/billing/settings/").content.decode()
    assert "Search messages from" in page
    tab = client.get("/projects/billing/settings/").context["setting_forms"]["memory"]
    posted = {f"initial-{name}": value for name, value in tab.initial.items() if value is not None}
    posted |= {name: value for name, value in tab.initial.items() if value not in (None, False)}
    posted |= {"tab": "memory", "indexed_roles": ["user"], "min_index_chars": 12}
    assert client.post("/projects/billing/settings/", posted).status_code == 302
    project.refresh_from_db()
    assert (project.indexed_roles, project.min_index_chars) == (["user"], 12)
    posted["indexed_roles"] = []
    answer = client.post("/projects/billing/settings/", posted)
    assert answer.status_code == 400
