"""Joins, departures and role changes appear in the activity log with their actor."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from memory.models import Activity, ActivityVerb
from projects import services
from projects.invitations import admit
from projects.models import Invitation, Membership

pytestmark = pytest.mark.django_db

ACTIVITY = "/projects/billing/memory/activity/"
SETTINGS = "/projects/billing/members/"
API = "/api/v1/projects/billing/"


def describe_act(act: Activity) -> tuple:
    """Who did what to whom, from and to which role."""
    names = [user.get_username() if user else None for user in (act.by, act.whom)]
    return names[0], act.verb, names[1], act.role_before, act.role_after


@pytest.fixture
def log(project):
    def acts() -> list[tuple]:
        rows = Activity.objects.filter(project=project).select_related("by", "whom")
        return [describe_act(act) for act in rows.order_by("id")]

    return acts


def page_of(response) -> str:
    return " ".join(response.content.decode().split())


def test_the_page_of_settings(client, owner, stranger, project, log):
    client.force_login(owner)
    to = {"username": "stan"}
    client.post(SETTINGS, to | {"action": "add", "role": "viewer"})
    admit(Invitation.objects.get(), stranger)
    client.post(SETTINGS, to | {"action": "add", "role": "owner"})
    client.post(SETTINGS, to | {"action": "role", "role": "editor"})
    client.post(SETTINGS, to | {"action": "role", "role": "editor"})
    client.post(SETTINGS, to | {"action": "remove"})
    assert log() == [
        ("olive", "invited", None, "", "viewer"),
        ("stan", "joined", "stan", "", "viewer"),
        ("olive", "role_changed", "stan", "viewer", "editor"),
        ("olive", "member_gone", "stan", "editor", ""),
    ]


def test_the_api(api, owner, stranger, project, log):
    client = api(owner)
    assert client.post(f"{API}members/", {"username": "stan", "role": "viewer"}, "json").status_code
    admit(Invitation.objects.get(), stranger)
    client.patch(f"{API}members/stan/", {"role": "owner"}, "json")
    client.delete(f"{API}members/stan/")
    assert log() == [
        ("olive", "invited", None, "", "viewer"),
        ("stan", "joined", "stan", "", "viewer"),
        ("olive", "role_changed", "stan", "viewer", "owner"),
        ("olive", "member_gone", "stan", "owner", ""),
    ]


def test_an_invitation_and_who_came_in_by_it(api, owner, stranger, project, log):
    body = {"role": "viewer"}
    assert api(owner).post(f"{API}invitations/", body, "json").status_code == 201
    link = Invitation.objects.get()
    admit(link, stranger)
    # A second time there is nothing to tell.
    admit(link, stranger)
    assert log() == [
        ("olive", "invited", None, "", "viewer"),
        ("stan", "joined", "stan", "", "viewer"),
    ]


def test_a_refused_change_leaves_no_activity(owner, project, log):
    member = Membership.objects.get(user=owner)
    with pytest.raises(services.LastOwnerError):
        services.remove_member(member, owner)
    with pytest.raises(services.LastOwnerError):
        services.change_role(member, "viewer", owner)
    assert log() == []


def test_a_command_is_logged_as_strata_itself(project, log, capsys):
    call_command("create_token", "robot", "--create", "--project=billing")
    assert log() == [(None, "member_added", "robot", "", "editor")]


def test_the_admin(admin_client, admin_user, project, editor, stranger, log):
    row = Membership.objects.get(user=editor)
    url = "/admin/projects/membership/"
    admin_client.post(f"{url}{row.pk}/change/", {"role": "viewer"})
    new = {"user": stranger.pk, "project": str(project.pk), "role": "editor"}
    admin_client.post(f"{url}add/", new)
    admin_client.post(f"{url}{row.pk}/delete/", {"post": "yes"})
    picked = {"action": "delete_selected", "_selected_action": [str(new_row(stranger).pk)]}
    admin_client.post(url, picked | {"post": "yes"})
    assert log() == [
        ("admin", "role_changed", "edgar", "editor", "viewer"),
        ("admin", "member_added", "stan", "", "editor"),
        ("admin", "member_gone", "edgar", "viewer", ""),
        ("admin", "member_gone", "stan", "editor", ""),
    ]


def new_row(user) -> Membership:
    return Membership.objects.get(user=user)


def test_the_rows_on_a_projects_page_in_the_admin(
    admin_client, project, owner, editor, stranger, viewer, log
):
    page = admin_client.get(f"/admin/projects/project/{project.pk}/change/")
    form = page.context["adminform"].form
    fields = {name: value for name, value in form.initial.items() if value not in (None, False)}
    rows = list(project.memberships.order_by("created_at", "id"))
    prefix = "memberships"
    fields |= {f"{prefix}-TOTAL_FORMS": len(rows) + 1, f"{prefix}-INITIAL_FORMS": len(rows)}
    for place, row in enumerate(rows):
        place_name = f"{prefix}-{place}"
        fields |= {f"{place_name}-id": row.pk, f"{place_name}-project": project.pk}
        fields |= {f"{place_name}-user": row.user_id, f"{place_name}-role": row.role}
        if row.user == editor:
            fields[f"{place_name}-role"] = "owner"
        if row.user == viewer:
            fields[f"{place_name}-DELETE"] = "on"
    fields |= {f"{prefix}-{len(rows)}-user": stranger.pk, f"{prefix}-{len(rows)}-role": "viewer"}
    fields |= {f"{prefix}-{len(rows)}-project": project.pk}
    answer = admin_client.post(f"/admin/projects/project/{project.pk}/change/", fields)
    assert answer.status_code == 302, answer.context["errors"]
    assert sorted(log(), key=lambda act: str(act[2])) == [
        ("admin", "role_changed", "edgar", "editor", "owner"),
        ("admin", "member_added", "stan", "", "viewer"),
        ("admin", "member_gone", "vera", "viewer", ""),
    ]


def test_the_pages_say_it_in_words(client, owner, editor, viewer, project):
    services.change_role(Membership.objects.get(user=editor), "viewer", owner)
    services.remove_member(Membership.objects.get(user=viewer), viewer)
    client.force_login(owner)
    page = page_of(client.get(ACTIVITY))
    assert "<b>olive</b> changed a role: <b>edgar · Editor → Viewer</b>" in page
    # Who did it to themselves is named once.
    assert "<b>vera</b> left the project: <b>Viewer</b>" in page
    only = page_of(client.get(ACTIVITY, {"verb": "role_changed"})).partition('id="done"')[2]
    assert "edgar" in only and "vera" not in only


def test_the_api_tells_whom_and_is_asked_for_them(api, owner, editor, viewer, project):
    services.change_role(Membership.objects.get(user=editor), "viewer", owner)
    services.remove_member(Membership.objects.get(user=viewer), owner)
    rows = api(owner).get(f"{API}activity/").json()["results"]
    assert [(row["whom"], row["role_before"], row["role_after"]) for row in rows] == [
        ("vera", "viewer", ""),
        ("edgar", "editor", "viewer"),
    ]
    rows = api(owner).get(f"{API}activity/", {"whom": "edgar"}).json()["results"]
    assert [row["verb"] for row in rows] == ["role_changed"]


def test_a_deleted_user_is_no_longer_named(client, owner, editor, project):
    services.remove_member(Membership.objects.get(user=editor), owner)
    editor.delete()
    client.force_login(owner)
    assert "a former user · Editor" in page_of(client.get(ACTIVITY))


def test_the_list_takes_the_same_queries_for_many(client, api, owner, project, person):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def queries(get) -> int:
        get()
        with CaptureQueriesContext(connection) as captured_queries:
            get()
        return len(captured_queries)

    client.force_login(owner)
    asks = (lambda: client.get(ACTIVITY), lambda: api(owner).get(f"{API}activity/"))
    services.add_member(project, person("guest0"), "viewer", owner)
    few = [queries(get) for get in asks]
    for number in range(1, 12):
        services.add_member(project, person(f"guest{number}"), "viewer", owner)
    assert [queries(get) for get in asks] == few
    assert Activity.objects.filter(verb=ActivityVerb.MEMBER_ADDED).count() == 12


def test_an_invitation_lasts_as_it_did(api, owner, project):
    payload = api(owner).post(f"{API}invitations/", {}, "json").json()
    assert Invitation.objects.get().expires_at > timezone.now() + timedelta(days=6)
    assert payload["link"]
