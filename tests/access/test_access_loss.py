"""Nobody who lost access to a project gets back in by what they had before."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import Http404
from django.test import Client
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed

from chat.importers import jobs
from chat.models import Import, Message, Session
from chat.streaming.poller import StreamGrant, withdrawn_grants
from memory import webhooks
from memory.api.mcp import server as mcp
from memory.api.mcp.tools import TOOLS
from memory.models import Webhook
from projects import invitations
from projects.models import Invitation, Membership, Token
from tests.access.access_loss import EXITS, Exits
from tests.chat.test_import_command import lines

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
    client = Client()
    client.force_login(leaver)
    return client


@pytest.fixture
def link_of(project) -> Callable:
    """Makes a link for any number of people, and returns its path."""

    def make(user) -> str:
        until = timezone.now() + timedelta(days=7)
        _invitation, secret = invitations.invite(project, user, role="owner", expires_at=until)
        return f"/join/billing/{secret}/"

    return make


@pytest.fixture
def session(project, leaver) -> Session:
    return Session.objects.create(project=project, creator=leaver)


@pytest.fixture
def uploaded(project, leaver, monkeypatch) -> Import:
    """An import of two conversations, which are written one after the other."""
    monkeypatch.setattr("chat.importers.jobs.enqueue", lambda import_id: None)
    monkeypatch.setattr("chat.importers.BATCH_MESSAGES", 1)
    content = "".join(lines("One", "Two", session=name) for name in ("first", "second"))
    return jobs.create_import(project, leaver, SimpleUploadedFile("a.jsonl", content.encode()))


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
    with pytest.raises(invitations.NotAdmittedError, match="was revoked"):
        invitations.admit(invitation, stranger)
    assert not Invitation.objects.open().exists()
    assert client.get(link, follow=True).status_code == 410


@by_each_exit
@pytest.mark.parametrize("is_limited", [False, True])
def test_a_token_opens_nothing_any_more(leave, exits, leaver, project, client, is_limited):
    _token, secret = Token.issue(leaver, project=project if is_limited else None)
    bearer = {"headers": {"Authorization": f"Bearer {secret}"}}
    url = "/api/v1/projects/billing/"
    leave(exits)
    reads = client.get(url, **bearer).status_code
    assert reads == 200 if role_of(leaver) == "viewer" else reads in (401, 404)
    for path, body in (("sessions/", {}), ("members/", {"username": "edgar", "role": "owner"})):
        answer = client.post(f"{url}{path}", body, "application/json", **bearer)
        assert answer.status_code in (401, 403, 404)
    assert client.patch(f"{url}members/edgar/", {"role": "owner"}, "application/json", **bearer)
    assert role_of(leaver) in (None, "viewer")


@by_each_exit
def test_an_open_stream_ends(leave, exits, leaver, session):
    token, _secret = Token.issue(leaver)
    grants = {
        StreamGrant(leaver.pk, session.project_id, session.pk),
        StreamGrant(leaver.pk, session.project_id, session.pk, token.pk),
        StreamGrant(leaver.pk, session.project_id),
    }
    assert withdrawn_grants(grants) == frozenset()
    leave(exits)
    expected = frozenset() if role_of(leaver) == "viewer" else grants
    assert withdrawn_grants(grants) == expected


@by_each_exit
def test_an_open_page_does_nothing_any_more(leave, exits, leaver, visitor, session):
    chat = f"/projects/billing/chats/{session.pk}/"
    assert visitor.get(chat).status_code == 200
    leave(exits)
    if role_of(leaver) != "viewer":
        assert visitor.get(chat).status_code in (302, 404)
    for path, fields in (
        (f"{chat}messages/", {"content": "Still here."}),
        ("/projects/billing/members/", {"action": "role", "username": "edgar", "role": "owner"}),
        ("/projects/billing/members/", {"action": "add", "username": "edgar", "role": "owner"}),
        ("/projects/billing/invitations/", {"action": "make", "role": "owner", "days": "7"}),
        ("/projects/billing/delete/", {"slug": "billing"}),
    ):
        answer = visitor.post(path, fields)
        assert answer.status_code in (403, 404) or "/login/" in answer["Location"]
    assert not Message.objects.exists()
    assert not Invitation.objects.exists()
    assert role_of(leaver) in (None, "viewer")


@by_each_exit
def test_an_import_that_waits_writes_nothing(leave, exits, uploaded):
    leave(exits)
    jobs.run_import(uploaded.pk)
    assert not Message.objects.exists()
    assert not Import.objects.exclude(state="failed").exists()


@by_each_exit
def test_an_import_that_runs_stops(leave, exits, uploaded, monkeypatch):
    import_file, written = jobs.import_file, []

    def importing(*arguments):
        *before, progress, result, upload = arguments

        def leave_after_the_first(done: int, total: int) -> None:
            progress(done, total)
            if not written:
                leave(exits)
            written.append(done)

        return import_file(*before, leave_after_the_first, result, upload)

    monkeypatch.setattr(jobs, "import_file", importing)
    jobs.run_import(uploaded.pk)
    assert len(written) == 1
    assert Message.objects.count() == 2
    assert not Import.objects.exclude(state="failed").exists()


@by_each_exit
def test_no_event_is_sent_to_the_webhooks_of_the_leaver(leave, exits, owner, leaver, project):
    left, stays = (
        Webhook.objects.create(project=project, url=url, events=["import.done"], created_by=user)
        for url, user in (("https://a.example", leaver), ("https://b.example", owner))
    )
    waiting = left.deliveries.create(project=project, event="import.done")
    leave(exits)
    waiting.refresh_from_db()
    assert list(Webhook.objects.subscribed_to(project.pk, "import.done")) == [stays]
    assert waiting.state == "given_up"
    left.refresh_from_db()
    assert left.off_because == "creator"
    webhooks.switch_on(left, owner)
    for user in get_user_model().objects.filter(pk=leaver.pk):
        user.save()
    left.refresh_from_db()
    assert left.is_on


@by_each_exit
def test_mcp_does_nothing_any_more(leave, exits, leaver, project):
    _token, secret = Token.issue(leaver, project=project)
    headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {secret}".encode())]
    request = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b""}
    leave(exits)
    with pytest.raises((AuthenticationFailed, Http404)):
        caller = mcp._authenticate(request | {"headers": headers})
        # A viewer is let in, and writes nothing.
        TOOLS["add_memory"].handler(caller, text="Still here.")
    assert not Message.objects.exists()
