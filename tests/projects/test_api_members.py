"""/api/v1/projects/{slug}/members/: who belongs to a project, and as what."""

import pytest

from projects.api import members
from projects.models import Membership
from projects.services import change_role, create_project, remove_member, set_archived
from projects.signals import member_removed

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/members/"


def test_members_see_each_other(api, owner, editor, viewer):
    members = api(viewer).get(URL).json()["results"]
    assert [(member["username"], member["role"]) for member in members] == [
        ("vera", "viewer"),
        ("edgar", "editor"),
        ("olive", "owner"),
    ]


def test_a_stranger_gets_404(api, stranger, project):
    client = api(stranger)
    assert client.get(URL).status_code == 404
    assert client.post(URL, {"username": "stan"}, format="json").status_code == 404
    assert client.delete(f"{URL}olive/").status_code == 404


def test_listing_takes_the_same_queries_for_many(
    api, owner, project, django_user_model, django_assert_num_queries
):
    client = api(owner)
    for number in range(10):
        user = django_user_model.objects.create(username=f"user-{number}")
        Membership.objects.create(project=project, user=user)
    with django_assert_num_queries(3):
        assert len(client.get(URL).json()["results"]) == 11


def test_an_owner_invites_a_user(api, owner, project, stranger):
    answer = api(owner).post(URL, {"username": "stan", "role": "viewer"}, format="json")
    assert answer.status_code == 201
    assert (answer.json()["username"], answer.json()["role"]) == ("stan", "viewer")
    assert answer.json()["state"] == "invited"
    assert not Membership.objects.filter(user=stranger).exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"username": "no body"}, "username"),
        ({"username": "edgar"}, "username"),
        ({"username": "ed\0"}, "username"),
        ({"role": "viewer"}, "username"),
        ({"username": "stan", "role": "king"}, "role"),
    ],
)
def test_a_user_who_cannot_be_added_is_reported_by_field(
    api, owner, editor, stranger, fields, field
):
    answer = api(owner).post(URL, fields, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == [field]


def test_editors_and_viewers_change_nobody(api, editor, viewer, stranger):
    for user in (editor, viewer):
        client = api(user)
        assert client.post(URL, {"username": "stan"}, format="json").status_code == 404
        assert client.patch(f"{URL}olive/", {"role": "viewer"}, format="json").status_code == 404
        assert client.delete(f"{URL}olive/").status_code == 404
    assert api(editor).delete(f"{URL}vera/").status_code == 404


@pytest.mark.parametrize("name", ["edgar", "vera"])
def test_a_member_leaves(api, owner, editor, viewer, project, name):
    client = api({"edgar": editor, "vera": viewer}[name])
    assert client.delete(f"{URL}{name}/").status_code == 204
    assert not project.memberships.filter(user__username=name).exists()
    assert client.delete(f"{URL}{name}/").status_code == 404


def test_a_member_leaves_an_archived_project(api, owner, editor, viewer, project):
    set_archived(project, True, owner)
    assert api(owner).delete(f"{URL}vera/").status_code == 409
    assert api(owner).patch(f"{URL}vera/", {"role": "editor"}, format="json").status_code == 409
    assert api(editor).delete(f"{URL}vera/").status_code == 404
    assert api(viewer).delete(f"{URL}vera/").status_code == 204
    assert not project.memberships.filter(user=viewer).exists()


def test_leaving_takes_the_scope_admin_and_the_project_of_the_token(api, viewer, owner):
    other = create_project(viewer, name="Support")
    assert api(viewer, scopes=["read", "write"]).delete(f"{URL}vera/").status_code == 403
    assert api(viewer, project=other).delete(f"{URL}vera/").status_code == 404
    assert Membership.objects.filter(user=viewer, project__slug="billing").exists()


def test_a_member_leaves_only_as_long_as_the_tag_is_current(api, owner, viewer):
    client = api(viewer)
    tag = client.get(f"{URL}vera/")["ETag"]
    Membership.objects.filter(user=viewer).update(role="editor")
    assert client.delete(f"{URL}vera/", headers={"If-Match": tag}).status_code == 412
    tag = client.get(f"{URL}vera/")["ETag"]
    assert client.delete(f"{URL}vera/", headers={"If-Match": tag}).status_code == 204


def test_an_owner_changes_a_role(api, owner, viewer):
    answer = api(owner).patch(f"{URL}vera/", {"role": "editor"}, format="json")
    assert answer.status_code == 200
    assert Membership.objects.get(user=viewer).role == "editor"


def test_a_membership_stays_with_its_user(api, owner, viewer, stranger):
    answer = api(owner).patch(f"{URL}vera/", {"username": "stan"}, format="json")
    assert list(answer.json()) == ["username"]


def test_an_owner_removes_a_member(api, owner, viewer):
    assert api(owner).delete(f"{URL}vera/").status_code == 204
    assert not Membership.objects.filter(user=viewer).exists()
    assert api(owner).delete(f"{URL}vera/").status_code == 404


def test_the_last_owner_stays(api, owner, editor):
    client = api(owner)
    left = client.delete(f"{URL}olive/")
    assert left.status_code == 400
    assert left.json() == {"detail": "A project needs at least one owner."}
    demoted = client.patch(f"{URL}olive/", {"role": "editor"}, format="json")
    assert demoted.json() == {"role": ["A project needs at least one owner."]}
    client.patch(f"{URL}edgar/", {"role": "owner"}, format="json")
    assert client.delete(f"{URL}olive/").status_code == 204


def test_the_last_owner_with_an_active_account_stays(api, owner, editor, viewer):
    Membership.objects.filter(user=editor).update(role="owner")
    editor.is_active = False
    editor.save()
    client = api(owner)
    assert client.delete(f"{URL}olive/").status_code == 400
    assert client.patch(f"{URL}olive/", {"role": "viewer"}, format="json").status_code == 400
    assert client.delete(f"{URL}vera/").status_code == 204
    assert client.delete(f"{URL}edgar/").status_code == 204


def test_changing_members_takes_the_scope_admin(api, owner, stranger):
    client = api(owner, scopes=["read", "write"])
    assert client.post(URL, {"username": "stan"}, format="json").status_code == 403


def test_a_member_who_is_removed_meanwhile_gets_no_role(api, owner, editor, monkeypatch):
    def change_late(member: Membership, role: str, by) -> None:
        Membership.objects.filter(pk=member.pk).delete()
        change_role(member, role, by)

    monkeypatch.setattr(members, "change_role", change_late)
    answer = api(owner).patch(f"{URL}edgar/", {"role": "owner"}, format="json")
    assert answer.status_code == 404
    assert Membership.objects.filter(user=editor).exists()


def test_a_member_is_removed_once(project, owner, editor):
    removed = []

    def record(member: Membership, **kwargs) -> None:
        removed.append(member.user)

    rows = [project.memberships.get(user=editor) for _ in range(2)]
    member_removed.connect(record)
    try:
        for row in rows:
            remove_member(row, owner)
    finally:
        member_removed.disconnect(record)
    assert removed == [editor]
