"""Archived projects: who archives and unarchives them, by page and API, and where they are listed.

tests/access/test_archived.py tries each route that writes.
"""

import re

import pytest
from django.utils import timezone

from chat.importers import ImportRejectedError, jobs
from chat.models import Import
from projects import invitations
from projects.models import Project
from projects.permissions import ProjectArchivedError
from projects.services import create_project, set_archived

pytestmark = pytest.mark.django_db

API = "/api/v1/projects/billing/"
ARCHIVE = "/projects/billing/archive/"


def is_archived() -> bool:
    return Project.objects.get(slug="billing").is_archived


def test_an_owner_archives_and_unarchives_on_the_page(client, owner, project):
    client.force_login(owner)
    response = client.post(ARCHIVE, {"action": "archive"}, follow=True)
    assert is_archived()
    page = response.content.decode()
    assert "This project is archived and read-only." in page
    assert "Unarchive project" in page and "Create link" not in page
    client.post(ARCHIVE, {"action": "unarchive"})
    assert not is_archived()


def test_the_pages_of_an_archived_project_offer_no_way_to_write(client, owner, project):
    client.force_login(owner)
    assert "New chat" in client.get("/projects/billing/").content.decode()
    set_archived(project, True)
    page = client.get("/projects/billing/").content.decode()
    assert "New chat" not in page
    assert "archived and read-only" in page


def test_the_settings_of_an_archived_project_are_disabled(client, owner, project):
    client.force_login(owner)
    assert " disabled" not in client.get("/projects/billing/settings/").content.decode()
    set_archived(project, True)
    page = client.get("/projects/billing/settings/").content.decode()
    assert page.count('<fieldset class="group stack"') > 4
    assert '<fieldset class="group stack" >' not in page
    assert re.findall(r'<button class="primary" (\w*)>\s*Save', page) == ["disabled"] * 4
    danger = page.partition('id="danger"')[2]
    assert "Unarchive project" in danger and "Delete project" in danger
    assert " disabled" not in danger


def test_the_page_of_a_refused_change_gives_the_reason(client, owner, project):
    client.force_login(owner)
    set_archived(project, True)
    accept = {"Accept": "text/html"}
    answer = client.post("/projects/billing/notes/", {"text": "The code."}, headers=accept)
    assert answer.status_code == 409
    assert "An owner can unarchive it." in answer.content.decode()


def test_archived_projects_are_listed_apart_on_the_page(client, owner, project):
    create_project(owner, name="Ferry")
    set_archived(project, True)
    client.force_login(owner)
    context = client.get("/").context
    assert [row.membership.project.name for row in context["rows"]] == ["Ferry"]
    assert [row.membership.project.name for row in context["archived"]] == ["Billing"]


def test_the_api_archives_filters_and_unarchives(api, owner, project):
    create_project(owner, name="Ferry")
    client = api(owner)
    answer = client.patch(API, {"archived": True}, format="json")
    assert answer.json()["archived"] is True
    slugs = {
        flag: [row["slug"] for row in client.get(f"/api/v1/projects/{flag}").json()["results"]]
        for flag in ("", "?archived=true", "?archived=false")
    }
    assert slugs == {
        "": ["ferry", "billing"],
        "?archived=true": ["billing"],
        "?archived=false": ["ferry"],
    }
    assert [row["id"] for row in client.get("/v1/models").json()["data"]] == ["ferry"]
    assert client.get("/v1/models/ferry").status_code == 200
    archived, unknown = (client.get(f"/v1/models/{slug}") for slug in ("billing", "nothing"))
    assert archived.status_code == unknown.status_code == 404
    assert archived.text.replace("billing", "nothing") == unknown.text
    answer = client.patch(API, {"archived": False, "name": "Bills"}, format="json")
    assert (answer.json()["archived"], answer.json()["name"]) == (False, "Bills")


def test_the_api_changes_nothing_else_of_an_archived_project(api, owner, project):
    set_archived(project, True)
    client = api(owner)
    for change in ({"name": "Bills"}, {"name": "Bills", "archived": True}):
        answer = client.patch(API, change, format="json")
        assert answer.status_code == 409
        assert "archived and read-only" in answer.json()["detail"]
    assert client.patch(API, {"archived": True}, format="json").status_code == 200
    project.refresh_from_db()
    assert project.name == "Billing"


def test_archiving_again_keeps_the_first_time(project):
    set_archived(project, True)
    first = Project.objects.get().archived_at
    set_archived(Project.objects.get(), True)
    assert Project.objects.get().archived_at == first


def test_an_editor_may_not_archive(client, editor, api):
    client.force_login(editor)
    assert client.post(ARCHIVE, {"action": "archive"}).status_code == 404
    assert api(editor).patch(API, {"archived": True}, format="json").status_code == 404
    assert not is_archived()


def test_an_archived_project_is_deleted(client, owner, project):
    set_archived(project, True)
    client.force_login(owner)
    client.post("/projects/billing/delete/", {"slug": "billing"})
    assert not Project.objects.exists()


def test_nobody_joins_an_archived_project(owner, stranger, project):
    invitation = invitations.invite_user(project, stranger.get_username(), "editor", owner)
    set_archived(project, True)
    with pytest.raises(ProjectArchivedError):
        invitations.admit(invitation, stranger)
    assert not project.memberships.filter(user=stranger).exists()


def test_an_import_that_runs_stops(owner, project):
    upload = Import.objects.create(project=project, user=owner, name="talk.jsonl")
    jobs._check_may_write(upload)
    Project.objects.update(archived_at=timezone.now())
    with pytest.raises(ImportRejectedError, match="archived"):
        jobs._check_may_write(upload)
