"""Entity tags: who read it before the change may not undo it, and who has it gets it only once."""

from datetime import UTC, datetime

import pytest

from projects.models import Project

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 12, 10, tzinfo=UTC)
PROJECT = "/api/v1/projects/billing/"
# What can be changed → where it is, a change that others make meanwhile, and one that comes late.
CHANGES = {
    "project": (lambda created_pk: PROJECT, {"name": "Invoices"}, {"name": "Accounts"}),
    "member": (
        lambda created_pk: f"{PROJECT}members/edgar/",
        {"role": "viewer"},
        {"role": "owner"},
    ),
    "session": (
        lambda created_pk: f"/api/v1/sessions/{created_pk}/",
        {"title": "A"},
        {"title": "B"},
    ),
    "message": (
        lambda created_pk: f"/api/v1/messages/{created_pk}/",
        {"content": "A"},
        {"content": "B"},
    ),
    "note": (lambda created_pk: f"{PROJECT}notes/{created_pk}/", {"text": "A"}, {"text": "B"}),
    "entry": (
        lambda created_pk: f"{PROJECT}memory/entries/{created_pk}/",
        {"pinned": True},
        {"summary": "B"},
    ),
    "fact": (lambda created_pk: f"{PROJECT}facts/{created_pk}/", {"object": "A"}, {"object": "B"}),
    "webhook": (
        lambda created_pk: f"{PROJECT}webhooks/{created_pk}/",
        {"events": ["entry.written"]},
        {"is_on": False},
    ),
}


@pytest.fixture
def created_id(request, api, owner, editor, project):
    """The id of a new thing of each kind."""
    from chat.models import Session
    from memory.models import Entry, Webhook

    client = api(owner)
    kind = request.getfixturevalue("kind")
    if kind in ("session", "message"):
        session = Session.objects.create(project=project, creator=owner)
        if kind == "session":
            return session.pk
        body = {"content": "Hello.", "reply": False}
        url = f"/api/v1/sessions/{session.pk}/messages/"
        return client.post(url, body, format="json").json()["message"]["id"]
    if kind == "note":
        return client.post(f"{PROJECT}notes/", {"text": "4711"}, format="json").json()["id"]
    if kind == "fact":
        fact = {"subject": "Billing", "predicate": "is owned by", "object": "us"}
        return client.post(f"{PROJECT}facts/", fact, format="json").json()["id"]
    if kind == "webhook":
        url, events = "https://good.example.org/hook", ["message.posted"]
        return Webhook.objects.create(project=project, url=url, events=events, created_by=owner).pk
    if kind == "entry":
        return Entry.objects.create(
            project=project,
            granularity="day",
            period_key="2026-03-12",
            zone="UTC",
            summary="- It is in May.",
            tokens=10,
            message_count=2,
            first_source_at=AT,
            last_source_at=AT,
            written_by="scripted",
            sources_hash="of its sources",
        ).pk
    return None


@pytest.fixture
def client(api, owner):
    return api(owner)


by_kind = pytest.mark.parametrize("kind", CHANGES)


@by_kind
def test_a_stale_change_gets_412_and_changes_nothing(client, kind, created_id):
    where, earlier, late = CHANGES[kind]
    read = client.get(where(created_id))
    assert client.patch(where(created_id), earlier, format="json").status_code == 200
    response = client.get(where(created_id))
    assert response.headers["ETag"] != read.headers["ETag"]
    condition = {"If-Match": read.headers["ETag"]}
    refused = client.patch(where(created_id), late, format="json", headers=condition)
    assert refused.status_code == 412
    assert refused.json()["detail"]
    assert client.delete(where(created_id), headers=condition).status_code == 412
    assert client.get(where(created_id)).json() == response.json()


@by_kind
def test_a_change_of_what_was_read_is_made(client, kind, created_id):
    where, change, more = CHANGES[kind]
    read = client.get(where(created_id))
    condition = {"If-Match": read.headers["ETag"]}
    changed = client.patch(where(created_id), change, format="json", headers=condition)
    assert changed.status_code == 200
    # The answer's tag is the one that its reader has now. A proxy that compresses makes it weak.
    condition = {"If-Match": f"W/{changed.headers['ETag']}"}
    assert (
        client.patch(where(created_id), more, format="json", headers=condition).status_code == 200
    )
    condition = {"If-Match": client.get(where(created_id)).headers["ETag"]}
    response = client.delete(where(created_id), headers=condition)
    assert response.status_code in (200, 204)


@by_kind
def test_an_unchanged_object_is_not_sent_again(client, kind, created_id):
    where, change, _ = CHANGES[kind]
    tag = client.get(where(created_id)).headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        response = client.get(where(created_id), headers={"If-None-Match": known})
        assert (response.status_code, response.content, response.headers["ETag"]) == (304, b"", tag)
    client.patch(where(created_id), change, format="json")
    assert client.get(where(created_id), headers={"If-None-Match": tag}).status_code == 200


@by_kind
def test_a_condition_that_is_none_is_refused(client, kind, created_id):
    where, change, _ = CHANGES[kind]
    before = client.get(where(created_id)).json()
    for etag in ("x", '"1', ""):
        answer = client.patch(where(created_id), change, format="json", headers={"If-Match": etag})
        assert answer.status_code in (400, 412), etag
    assert client.get(where(created_id)).json() == before


def test_head_has_the_headers_of_get_and_options_has_no_tag(client, project):
    tag = client.get(PROJECT).headers["ETag"]
    assert client.head(PROJECT).headers["ETag"] == tag
    assert client.head(PROJECT, headers={"If-None-Match": tag}).status_code == 304
    assert "ETag" not in client.options(PROJECT).headers


def test_the_bank_is_rendered_once(client, project):
    url = f"{PROJECT}memory/"
    tag = client.get(url).headers["ETag"]
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 304


def test_a_reaction_is_another_message_to_its_reader_and_the_same_to_its_editor(
    client, project, owner
):
    from chat.conversations.messages import post_message
    from chat.models import Session

    posted = post_message(Session.objects.create(project=project, creator=owner), "A", author=owner)
    url = f"/api/v1/messages/{posted.pk}/"
    tag = client.get(url).headers["ETag"]
    client.post(f"{url}reactions/", {"emoji": "👍"}, format="json")
    assert client.get(url, headers={"If-None-Match": tag}).status_code == 200
    condition = {"If-Match": tag}
    assert client.patch(url, {"content": "B"}, format="json", headers=condition).status_code == 200


def test_a_project_that_was_changed_is_not_deleted(client, project):
    tag = client.get(PROJECT).headers["ETag"]
    Project.objects.update(name="Invoices")
    assert client.delete(PROJECT, headers={"If-Match": tag}).status_code == 412
    assert Project.objects.exists()
