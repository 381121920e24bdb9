"""Links into a project: who makes them, whom they let in, and when they do not."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.utils import timezone

from projects import invitations, tasks
from projects.invitations import NotAdmittedError, admit
from projects.models import Invitation, MemberRole, Membership
from projects.services import change_role, create_project, remove_member, set_archived

pytestmark = pytest.mark.django_db
MADE, API = "/projects/billing/invitations/", "/api/v1/projects/billing/invitations/"
ACCOUNT = {"username": "new", "password1": "a-long-word-7", "password2": "a-long-word-7"}


@pytest.fixture
def issue(project, owner):
    """Makes a link, and returns the invitation and the path of the link."""

    def make(**fields) -> tuple[Invitation, str]:
        fields = {"max_uses": 1, "expires_at": timezone.now() + timedelta(days=7)} | fields
        invitation, secret = Invitation.issue(project, created_by=owner, **fields)
        return invitation, f"/join/billing/{secret}/"

    return make


def role_of(name: str) -> str | None:
    membership = Membership.objects.filter(user__username=name, project__slug="billing").first()
    return membership.role if membership else None


def test_an_owner_makes_a_link_that_is_shown_this_once(olive, project, client):
    answer = olive.post(MADE, {"role": "viewer", "days": "7", "max_uses": "3", "action": "make"})
    link = re.search(r'value="(http://testserver/join/billing/\S+/)"', answer.content.decode())[1]
    assert "no-store" in answer["Cache-Control"]
    invitation = Invitation.objects.get()
    assert (invitation.role, invitation.max_uses, invitation.uses) == ("viewer", 3, 0)
    page = olive.get("/projects/billing/settings/").content.decode()
    assert "0 of 3 used" in page
    secret = link.split("/")[-2]
    assert secret not in page
    assert secret not in str(Invitation.objects.values())
    assert client.get(link, follow=True).status_code == 200


@pytest.mark.parametrize(
    "wrong", [{"role": "king"}, {"days": "9999"}, {"max_uses": "0"}, {"max_uses": "x"}]
)
def test_invalid_values_are_reported_and_create_nothing(olive, project, wrong):
    answer = olive.post(MADE, {"role": "editor", "days": "7", "max_uses": "1"} | wrong)
    assert answer.status_code == 400
    assert 'class="error"' in answer.content.decode()
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("username", ["editor", "viewer", "stranger"])
def test_nobody_else_makes_or_takes_back_one(client, request, issue, username):
    invitation, _path = issue()
    client.force_login(request.getfixturevalue(username))
    assert client.post(MADE, {"role": "owner", "days": "7"}).status_code == 404
    assert client.post(MADE, {"action": "revoke", "id": invitation.pk}).status_code == 404
    assert Invitation.objects.open().count() == 1
    settings = client.get("/projects/billing/settings/").content.decode()
    assert "Revoke" not in settings


def test_a_user_with_an_account_signs_in_and_joins(client, person, issue, django_user_model):
    person("nina")
    _invitation, path = issue(role=MemberRole.VIEWER)
    assert client.get(path)["Location"] == "/join/"
    page = client.get("/join/").content.decode()
    assert "Billing" in page
    assert path not in page
    form = {"login": "nina", "password": "pass-word-1", "next": "/join/"}
    assert client.post("/accounts/login/", form)["Location"] == "/join/"
    assert "Join as nina" in client.get("/join/").content.decode()
    assert role_of("nina") is None
    assert client.post("/join/")["Location"] == "/projects/billing/"
    assert role_of("nina") == "viewer"


def test_a_user_without_an_account_creates_one_and_joins(client, issue):
    invitation, path = issue()
    client.get(path)
    answer = client.post("/accounts/signup/", ACCOUNT, follow=True)
    assert answer.redirect_chain[-1][0] == "/projects/billing/"
    assert role_of("new") == "editor"
    invitation.refresh_from_db()
    assert invitation.uses == 1


@pytest.mark.parametrize("name", ["extractive", "Demo", "Claude"])
def test_nobody_is_named_like_a_model(client, issue, django_user_model, name):
    client.get(issue()[1])
    client.post("/accounts/signup/", ACCOUNT | {"username": name}, follow=True)
    assert not django_user_model.objects.filter(username__iexact=name).exists()


def test_a_link_for_one_makes_one_account(client, issue, django_user_model):
    _invitation, path = issue()
    late = Client()
    late.get(path)
    client.get(path)
    client.post("/accounts/signup/", ACCOUNT)
    answer = late.post("/accounts/signup/", ACCOUNT | {"username": "late"}, follow=True)
    assert "need an invitation" in answer.content.decode()
    assert "has been used up" in late.get("/join/").content.decode()
    assert not django_user_model.objects.filter(username="late").exists()


def test_an_account_is_not_made_when_the_link_is_taken_meanwhile(
    client, issue, monkeypatch, django_user_model
):
    invitation, path = issue()
    client.get(path)
    monkeypatch.setattr("projects.accounts.adapter.is_invited", lambda request: True)
    Invitation.objects.update(uses=1)
    answer = client.post("/accounts/signup/", ACCOUNT, follow=True)
    assert "has been used up" in answer.content.decode()
    assert not django_user_model.objects.filter(username="new").exists()


def test_an_open_server_makes_the_account_without_the_link(
    client, issue, settings, project, django_user_model
):
    settings.SIGNUP_OPEN = True
    client.get(issue()[1])
    Invitation.objects.update(revoked_at=timezone.now())
    answer = client.post("/accounts/signup/", ACCOUNT, follow=True)
    assert "was revoked" in answer.content.decode()
    other = Client()
    other.get(issue()[1])
    set_archived(project, True)
    other.post("/accounts/signup/", ACCOUNT | {"username": "other"})
    assert django_user_model.objects.filter(username__in=("new", "other")).count() == 2
    assert role_of("new") is role_of("other") is None


@pytest.mark.parametrize(
    ("over", "reason"),
    [
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, "has expired"),
        ({"uses": 1}, "has been used up"),
        ({"revoked_at": timezone.now()}, "was revoked"),
    ],
)
def test_a_link_that_is_over_says_so_and_lets_nobody_in(client, person, issue, over, reason):
    invitation, path = issue()
    Invitation.objects.update(**over)
    assert reason in client.get(path, follow=True).content.decode()
    assert "need an invitation" in client.get("/accounts/signup/").content.decode()
    client.force_login(person("nina"))
    client.get(path)
    answer = client.post("/join/")
    assert answer.status_code == 410
    assert reason in answer.content.decode()
    assert role_of("nina") is None


def test_a_link_to_an_archived_project_says_so_before_an_account_is_made(
    client, person, issue, project
):
    set_archived(project, True)
    answer = client.get(issue()[1], follow=True)
    page = answer.content.decode()
    assert answer.status_code == 410 and "This project is archived" in page
    assert "Create account" not in page and "for a new link" not in page
    assert "need an invitation" in client.get("/accounts/signup/").content.decode()
    client.force_login(person("nina"))
    client.get(issue()[1])
    assert client.post("/join/").status_code == 410
    set_archived(project, False)
    assert client.post("/join/").status_code == 302
    assert role_of("nina") == "editor"


def test_an_unknown_link_is_none(client, issue):
    _invitation, path = issue()
    assert client.get("/join/billing/nonsense/").status_code == 404
    assert client.get(path.replace("billing", "support")).status_code == 404
    assert client.get("/join/").status_code == 404
    assert "Open the invitation link" in client.get("/join/").content.decode()


def test_looking_for_links_is_limited(client, db):
    answers = [client.get("/join/billing/nonsense/").status_code for _ in range(61)]
    assert answers[-1] == 429


def test_a_member_stays_what_they_are_and_uses_nothing_up(client, viewer, issue):
    invitation, path = issue(role=MemberRole.OWNER)
    client.force_login(viewer)
    assert client.get(path, follow=True).redirect_chain[-1][0] == "/projects/billing/"
    assert role_of("vera") == "viewer"
    invitation.refresh_from_db()
    assert invitation.uses == 0


def test_a_removed_member_does_not_come_back_by_a_link(issue, editor, stranger, project):
    many, _path = issue(max_uses=None)
    admit(many, stranger)
    for user in (stranger, editor):
        remove_member(project.memberships.get(user=user))
        with pytest.raises(NotAdmittedError, match="already used"):
            admit(many, user)


def test_the_links_of_an_owner_who_is_none_any_more_are_over(issue, project, owner, editor):
    invitation, _path = issue(max_uses=None)
    change_role(project.memberships.get(user=editor), MemberRole.OWNER)
    change_role(project.memberships.get(user=owner), MemberRole.EDITOR)
    invitation.refresh_from_db()
    assert invitation.state == "revoked"


def test_a_link_is_taken_back_on_the_page(olive, issue, client):
    invitation, path = issue()
    olive.post(MADE, {"action": "revoke", "id": invitation.pk})
    assert "was revoked" in client.get(path, follow=True).content.decode()
    assert "Revoke" not in olive.get("/projects/billing/settings/").content.decode()
    assert olive.post(MADE, {"action": "revoke", "id": "x"}).status_code == 404


def test_old_invitations_are_deleted(issue):
    kept_invitation, _path = issue()
    old, _path = issue(expires_at=timezone.now() - invitations.RETENTION)
    tasks.clear()
    assert list(Invitation.objects.all()) == [kept_invitation]


def test_programs_make_list_and_take_back_links(api, owner, project, client):
    program = api(owner)
    payload = program.post(API, {"role": "viewer", "max_uses": None}, format="json").json()
    assert payload["link"].startswith("http://testserver/join/billing/")
    assert (payload["role"], payload["max_uses"], payload["state"]) == ("viewer", None, "open")
    listed = program.get(API).json()["results"]
    assert [row["id"] for row in listed] == [payload["id"]]
    assert "link" not in listed[0]
    text = f"{API}{payload['id']}/"
    assert program.get(text).json()["created_by"] == "olive"
    assert program.delete(text).status_code == 204
    assert program.get(text).status_code == 404
    assert client.get(payload["link"], follow=True).status_code == 410


def test_the_same_request_makes_one_link_and_tells_it_once(api, owner, project):
    program, key = api(owner), {"HTTP_IDEMPOTENCY_KEY": "one"}
    first = program.post(API, {}, format="json", **key).json()
    repeated_payload = program.post(API, {}, format="json", **key).json()
    assert repeated_payload == first | {"link": None}
    assert Invitation.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "king"},
        {"max_uses": 0},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00Z"},
    ],
)
def test_programs_get_the_reason(api, owner, project, wrong):
    answer = api(owner).post(API, wrong, format="json")
    assert answer.status_code == 400
    assert list(answer.json()) == list(wrong)


@pytest.mark.django_db(transaction=True)
def test_a_link_for_one_that_two_take_at_once_admits_one(person):
    owner, two = person("olive"), [person("nina"), person("nils")]
    project = create_project(owner, name="Billing", slug="billing")
    until = timezone.now() + timedelta(days=1)
    invitation, _secret = Invitation.issue(project, created_by=owner, max_uses=1, expires_at=until)
    together = Barrier(2)

    def come(user) -> bool:
        try:
            together.wait(10)
            admit(invitation, user)
        except NotAdmittedError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as crowd:
        assert sorted(crowd.map(come, two)) == [False, True]
    assert project.memberships.count() == 2
    get_user_model().objects.all().delete()


@pytest.mark.django_db(transaction=True)
def test_a_user_who_accepts_two_invitations_at_once_becomes_a_member_by_one_of_them(
    owner, stranger, monkeypatch
):
    project = create_project(owner, name="Billing", slug="billing")
    until = timezone.now() + timedelta(days=1)
    rows = [Invitation.issue(project, created_by=owner, expires_at=until)[0] for _ in range(2)]
    together = Barrier(2)

    def find_nothing(**fields):
        together.wait(10)
        return Membership.objects.none()

    def come(invitation: Invitation) -> Membership:
        try:
            return admit(invitation, stranger)
        finally:
            connection.close()

    monkeypatch.setattr(Membership.objects, "filter", find_nothing)
    with ThreadPoolExecutor(2) as crowd:
        [first, second] = crowd.map(come, rows)
    assert first == second
    assert sorted(Invitation.objects.values_list("uses", flat=True)) == [0, 1]
    get_user_model().objects.all().delete()
