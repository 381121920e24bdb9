"""Projects in the admin: changed and deleted as on their own pages."""

from datetime import UTC, datetime

import pytest
from lxml import html

from memory.models import Activity, ActivityVerb, Entry, EntryState
from projects.models import Project

pytestmark = pytest.mark.django_db

PROJECTS = "/admin/projects/project/"

MARCH = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def submit(admin_client, project):
    """Sends the form of the project that was open before, with other `values`."""
    address = f"{PROJECTS}{project.pk}/change/"
    page = html.fromstring(admin_client.get(address).content.decode())
    form = dict(page.get_element_by_id("project_form").form_values())

    def send(**values):
        return admin_client.post(address, form | values, follow=True).content.decode()

    return send


def test_a_page_of_before_undoes_no_change_of_others(submit, project):
    Project.objects.update(instructions="Answer briefly.", archived_at="2026-03-03T09:00Z")
    assert "was changed successfully" in submit(name="Renamed")
    project.refresh_from_db()
    assert (project.name, project.instructions) == ("Renamed", "Answer briefly.")
    assert project.is_archived


def test_archiving_is_in_the_activity(submit, admin_user, project):
    submit(archived_at_0="2026-03-03", archived_at_1="09:00:00")
    act = Activity.objects.get()
    assert (act.verb, act.by) == (ActivityVerb.ARCHIVED, admin_user)


@pytest.mark.parametrize("address", [PROJECTS, f"{PROJECTS}{{}}/delete/"])
def test_a_deleted_project_leaves_no_row(admin_client, project, owner, address):
    fields = {
        "project": project,
        "period_key": "2026-03",
        "zone": "UTC",
        "tokens": 0,
        "message_count": 2,
        "first_source_at": MARCH,
        "last_source_at": MARCH,
    }
    month = Entry.objects.create(granularity="month", **fields)
    Entry.objects.create(granularity="week", parent=month, **fields)
    chosen = {"action": "delete_selected", "_selected_action": [project.pk], "post": "yes"}
    assert admin_client.post(address.format(project.pk), chosen).status_code == 302
    assert not Project.objects.exists()
    assert not EntryState.objects.exists()
