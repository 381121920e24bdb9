"""A user who is invited by name decides whether they become a member."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects import invitations
from projects.models import Invitation, Membership
from projects.services import add_member, create_project, remove_member
from tests.html import compact

pytestmark = pytest.mark.django_db

MEMBERS = "/projects/billing/members/"
SETTINGS = "/projects/billing/settings/"
NAMES = ("stan", "STAN", "Stan")
API, MINE = "/api/v1/projects/billing/", "/api/v1/invitations/"


@pytest.fixture
def invitation(project, owner, stranger) -> Invitation:
    return invitations.invite_user(project, "stan", "viewer", owner)


def role_of(user) -> str | None:
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def test_an_owner_invites_on_the_page_and_the_user_accepts(client, owner, project, stranger):
    client.force_login(owner)
    client.post(MEMBERS, {"action": "add", "username": "stan", "role": "viewer"})
    assert "stan" in client.get("/projects/billing/settings/").content.decode()
    assert role_of(stranger) is None
    client.force_login(stranger)
    assert client.get("/projects/billing/").status_code == 404
    page = client.get("/").content.decode()
    assert "Accept: Billing" in page
    answer = client.post(f"/invitations/{Invitation.objects.get().pk}/", {"action": "accept"})
    assert answer["Location"] == "/projects/billing/"
    assert role_of(stranger) == "viewer"
    assert "Accept: Billing" not in client.get("/").content.decode()
    client.force_login(owner)
    assert "only for this user" not in client.get("/projects/billing/settings/").content.decode()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("members/", {"username": "stan", "rol": "viewer"}),
        ("invitations/", {"username": "stan", "role": "viewer"}),
        ("invitations/", {"expires": "2026-03-01T00:00:00Z"}),
    ],
)
def test_a_misspelled_field_invites_nobody(api, owner, project, stranger, path, body):
    answer = api(owner).post(f"{API}{path}", body, format="json")
    assert answer.status_code == 400
    assert list(answer.json().values()) == [["There is no such field."]]
    assert not Invitation.objects.exists()


def test_a_second_click_on_accept_leads_to_the_project_too(client, invitation, stranger, owner):
    client.force_login(stranger)
    path = f"/invitations/{invitation.pk}/"
    for _ in range(2):
        assert client.post(path, {"action": "accept"})["Location"] == "/projects/billing/"
    client.force_login(owner)
    assert client.post(path, {"action": "accept"}).status_code == 404


def test_the_case_of_the_name_does_not_matter(project, owner, stranger, editor):
    first = invitations.invite_user(project, "Stan", "viewer", owner)
    assert (first.user, first.username) == (stranger, "Stan")
    invitations.invite_user(project, "sTAN", "viewer", owner)
    assert [it.username for it in project.invitations.unrevoked()] == ["sTAN"]
    with pytest.raises(invitations.AlreadyMemberError):
        invitations.invite_user(project, "Edgar", "viewer", owner)


def test_of_two_names_that_differ_only_in_their_case_the_exact_one_counts(
    project, owner, stranger, django_user_model
):
    other = django_user_model.objects.create_user("STAN")
    invited = [invitations.invite_user(project, name, "viewer", owner).user for name in NAMES]
    assert invited == [stranger, other, None]


def test_the_user_declines(client, invitation, stranger):
    client.force_login(stranger)
    path = f"/invitations/{invitation.pk}/"
    assert client.post(path, {"action": "decline"})["Location"] == "/"
    assert client.post(path, {"action": "accept"}).status_code == 404
    assert role_of(stranger) is None


def test_somebody_with_many_projects_does_not_fill_the_page_of_another(client, owner, stranger):
    for number in range(60):
        project = create_project(owner, name=f"Billing {number}")
        invitations.invite_user(project, "stan", "viewer", owner)
    client.force_login(stranger)
    page = client.get("/").content.decode()
    assert page.count("Accept: Billing") == 50
    assert "Accept: Billing 59" in page


@pytest.mark.parametrize("username", ["owner", "editor"])
def test_nobody_else_accepts_it(client, api, request, invitation, username):
    user = request.getfixturevalue(username)
    client.force_login(user)
    assert client.post(f"/invitations/{invitation.pk}/", {"action": "accept"}).status_code == 404
    assert api(user).post(f"{MINE}{invitation.pk}/").status_code == 404
    assert api(user).get(MINE).json()["results"] == []


def test_a_user_accepts_and_declines_by_api(api, project, owner, invitation, stranger):
    client = api(stranger)
    [listed] = client.get(MINE).json()["results"]
    assert (listed["id"], listed["project"]) == (str(invitation.pk), "billing")
    assert client.delete(f"{MINE}{listed['id']}/").status_code == 204
    second_invitation = invitations.invite_user(project, "stan", "editor", owner)
    accepted = client.post(f"{MINE}{second_invitation.pk}/")
    assert (accepted.status_code, accepted.json()["role"]) == (200, "editor")
    assert role_of(stranger) == "editor"
    assert client.post(f"{MINE}{second_invitation.pk}/").status_code == 404


def test_a_token_for_one_project_accepts_nothing(api, person, invitation, stranger):
    from projects.services import create_project

    client = api(stranger, project=create_project(stranger, name="Own"))
    assert client.get(MINE).json()["results"] == []
    assert client.post(f"{MINE}{invitation.pk}/").status_code == 404


def test_an_unknown_name_is_answered_like_a_known_one(client, api, owner, project, stranger):
    answers, known = [], api(owner)
    for name in ("stan", "nobody"):
        answer = known.post(f"{API}members/", {"username": name, "role": "viewer"}, "json")
        answers.append((answer.status_code, {*answer.json()}, answer.json()["state"]))
    assert answers[0] == answers[1]
    listed = known.get(f"{API}invitations/").json()["results"]
    fields = [{k: v for k, v in row.items() if k in ("role", "state", "uses")} for row in listed]
    assert fields[0] == fields[1]
    acts = known.get(f"{API}activity/").json()["results"]
    assert [act["whom"] for act in acts] == [None, None]
    client.force_login(owner)
    page = client.get("/projects/billing/settings/").content.decode()
    assert page.count("only for this user") == 2


def test_a_later_account_of_the_name_cannot_accept(api, project, owner, person):
    sent = invitations.invite_user(project, "nobody", "viewer", owner)
    late = person("nobody")
    assert api(late).get(MINE).json()["results"] == []
    with pytest.raises(invitations.NotAdmittedError):
        invitations.admit(sent, late)


def test_an_owner_revokes_it(client, owner, invitation, stranger):
    client.force_login(owner)
    client.post("/projects/billing/invitations/", {"action": "revoke", "id": invitation.pk})
    client.force_login(stranger)
    assert "Accept" not in client.get("/").content.decode()


def test_a_second_invitation_replaces_the_first(project, owner, invitation, stranger):
    second = invitations.invite_user(project, "stan", "editor", owner)
    assert list(Invitation.objects.for_user(stranger)) == [second]


@pytest.mark.parametrize("end", ["expired", "joined", "removed", "inviter removed"])
def test_it_ends(project, owner, editor, invitation, stranger, end):
    if end == "expired":
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "inviter removed":
        Membership.objects.filter(user=editor).update(role="owner")
        remove_member(Membership.objects.get(user=owner))
    else:
        member, _is_new = add_member(project, stranger)
        if end == "removed":
            remove_member(member)
    assert not Invitation.objects.for_user(stranger).exists()


def test_the_settings_show_that_it_has_expired(client, owner, invitation):
    client.force_login(owner)
    assert "Viewer · invited" in compact(client.get(SETTINGS).content.decode())
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert "Viewer · expired" in compact(client.get(SETTINGS).content.decode())


def test_the_list_takes_the_same_queries_for_many(
    client, project, owner, person, django_assert_max_num_queries
):
    client.force_login(owner)
    for number in range(10):
        invitations.invite_user(project, f"guest{number}", "viewer", owner)
    with django_assert_max_num_queries(12):
        client.get("/projects/billing/settings/")


def test_a_slug_that_is_taken_shows_nothing_of_the_other_project(api, stranger, project):
    client = api(stranger)
    payload = client.post("/api/v1/projects/", {"name": "Billing"}, "json").json()
    assert payload["slug"].startswith("billing-") and payload["slug"] != "billing-2"
    response = client.post("/api/v1/projects/", {"name": "X", "slug": "billing"}, "json")
    assert response.json() == {"slug": ["This slug is not available."]}
