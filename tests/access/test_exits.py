"""Nobody who lost access to a project gets back in by what they had before."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from projects import invitations
from projects.models import Invitation, Membership
from tests.access.exits import EXITS, Exits

pytestmark = pytest.mark.django_db

by_each_exit = pytest.mark.parametrize("leave", EXITS, ids=lambda leave: leave.__name__)


@pytest.fixture
def leaver(editor):
    Membership.objects.filter(user=editor).update(role="owner")
    return editor


@pytest.fixture
def exits(owner, leaver, admin_client) -> Exits:
    return Exits(owner, leaver, admin_client)


@pytest.fixture
def visitor(leaver) -> Client:
    made = Client()
    made.force_login(leaver)
    return made


@pytest.fixture
def link_of(project) -> Callable:
    """Makes a link for any number of people, and returns its path."""

    def make(user) -> str:
        until = timezone.now() + timedelta(days=7)
        _made, secret = invitations.invite(project, user, role="owner", expires_at=until)
        return f"/join/billing/{secret}/"

    return make


def role_of(user) -> str | None:
    rows = Membership.objects.filter(user=user.pk, project__slug="billing", user__is_active=True)
    return rows.values_list("role", flat=True).first()


@by_each_exit
def test_a_stranger_does_not_come_in_by_the_leavers_link(leave, exits, leaver, link_of, stranger):
    link = link_of(leaver)
    leave(exits)
    came = Client()
    came.force_login(stranger)
    came.get(link)
    assert came.post("/join/").status_code == 410
    assert role_of(stranger) is None
    assert not Invitation.objects.open().exists()


@by_each_exit
def test_the_leaver_does_not_come_back_by_any_link(leave, exits, owner, leaver, visitor, link_of):
    opened, own = link_of(owner), link_of(leaver)
    visitor.get(opened)
    leave(exits)
    visitor.post("/join/")
    for link in (opened, own):
        visitor.get(link)
        visitor.post("/join/")
    assert role_of(leaver) in (None, "viewer")


@pytest.mark.parametrize("change", ["inactive", "gone", "demoted", "removed"])
def test_a_link_is_closed_at_use_even_when_no_signal_was_sent(
    change, leaver, link_of, stranger, client
):
    link = link_of(leaver)
    invitation = Invitation.objects.get()
    rows = Membership.objects.filter(user=leaver)
    if change == "inactive":
        type(leaver).objects.update(is_active=False)
    elif change == "gone":
        Invitation.objects.update(created_by=None)
    elif change == "demoted":
        rows.update(role="editor")
    else:
        rows._raw_delete(rows.db)
    with pytest.raises(invitations.NotAdmittedError, match="taken back"):
        invitations.admit(invitation, stranger)
    assert not Invitation.objects.open().exists()
    assert client.get(link, follow=True).status_code == 410
