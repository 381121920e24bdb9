"""`Idempotency-Key`: once and no more, and the first answer again."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from chat.models import Attachment, Import, Message, Session
from memory.forgetting.service import ForgetScope, forget
from memory.models import Fact
from projects import tasks
from projects.api import idempotency
from projects.models import IdempotencyKey, Invitation, Membership, Project
from tests.chat.pictures import picture

pytestmark = pytest.mark.django_db

KEY = {"HTTP_IDEMPOTENCY_KEY": "8e03978e-40d5-43e8-bc93-6894a57f9324"}
ONE_KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"
PROJECTS = "/api/v1/projects/"

# POST routes that take no key, by name, and why a second one does no harm.
EXEMPT = {
    "api-received-invitation": "accepts: nobody becomes a member twice",
    "api-act": "decides about entries that are there: creates nothing",
    "api-choose": "chooses: to choose the same again changes nothing",
    "api-clear": "empties: creates nothing",
    "api-close": "closes: what is closed stays so",
    "api-file-retry": "reads again: creates nothing",
    "api-files": "the same content is not added twice",
    "api-forget": "forgets: what is gone is gone",
    "api-reactions": "each user gives each emoji once",
    "api-restore": "takes a deletion back: creates nothing",
    "api-saved-prompts": "a prompt of the same name is replaced",
    "api-share": "a chat has one share link",
    "api-stop": "stops: creates nothing",
    "api-summarize": "what is summarised is not summarised again",
}


def routes(patterns, names=()) -> list[URLPattern]:
    problems = []
    for pattern in patterns:
        problems += [pattern] if isinstance(pattern, URLPattern) else routes(pattern.url_patterns)
    return problems


def posting() -> dict[str, object]:
    """The view class behind each route of the API that takes a POST, by name."""
    named = {
        route.name: route.callback.view_class
        for route in routes(get_resolver().url_patterns)
        if (route.name or "").startswith("api-") and hasattr(route.callback, "view_class")
    }
    return {
        name: view
        for name, view in named.items()
        if hasattr(view, "post") and "post" in view.http_method_names
    }


def test_every_post_takes_a_key_or_is_exempt_for_a_reason():
    keyed = {name for name, view in posting().items() if getattr(view.post, "is_idempotent", False)}
    assert {"api-messages", "api-projects", "api-imports"} <= keyed
    assert set(posting()) - keyed == set(EXEMPT)


def test_the_schema_tells_of_the_key_and_its_answers(client):
    paths = client.get("/api/v1/schema/", headers={"Accept": "application/json"}).json()["paths"]
    post = paths["/api/v1/sessions/{id}/messages/"]["post"]
    headers = {parameter["name"] for parameter in post["parameters"] if parameter["in"] == "header"}
    assert headers == {"Idempotency-Key", "Last-Event-ID"}
    assert {"200", "201", "409", "410", "422"} <= set(post["responses"])
    plain = paths["/api/v1/messages/{id}/stop/"]["post"]
    assert "422" not in plain["responses"]
    keyed = [
        item
        for path in paths.values()
        for item in path.get("post", {}).get("parameters", [])
        if item["name"] == "Idempotency-Key"
    ]
    assert len(keyed) == len(posting()) - len(EXEMPT)


@pytest.fixture
def session(project, editor) -> Session:
    return Session.objects.create(project=project, creator=editor)


@pytest.fixture
def reply(session, editor) -> Message:
    from chat.conversations.messages import post_message

    question = post_message(session, "When?", author=editor)
    return post_message(session, "In May.", role="assistant", parent=question)


@pytest.fixture
def requests(project, session, stranger) -> dict:
    """For each kind of thing: where it is made, of what, and what is counted."""
    inside = f"{PROJECTS}billing/"
    messages_url = f"/api/v1/sessions/{session.pk}/messages/"
    recorded = {"content": "Said elsewhere.", "reply": False}
    return {
        "project": (PROJECTS, {"name": "Data"}, Project),
        "member": (f"{inside}members/", {"username": "stan", "role": "editor"}, Invitation),
        "session": (f"{inside}sessions/", {"title": "The cutover"}, Session),
        "message": (messages_url, recorded, Message),
        "note": (f"{inside}notes/", {"text": "The key is under the mat."}, Message),
        "fact": (
            f"{inside}facts/",
            {"subject": "billing", "predicate": "is owned by", "object": "Ana"},
            Fact,
        ),
    }


@pytest.mark.parametrize("kind", ["project", "member", "session", "message", "note", "fact"])
def test_a_repetition_creates_nothing_and_gets_the_same_response(api, owner, requests, kind):
    url, body, model = requests[kind]
    client, before = api(owner), model.objects.count()
    first = client.post(url, body, format="json", **KEY)
    response = client.post(url, body, format="json", **KEY)
    assert first.status_code == response.status_code == 201, first.content
    assert response.json() == first.json()
    assert model.objects.count() == before + 1
    assert "Idempotent-Replayed" not in first.headers
    assert response.headers["Idempotent-Replayed"] == "true"


def test_without_a_key_it_is_made_twice(api, owner):
    client = api(owner)
    for _ in range(2):
        assert client.post(PROJECTS, {"name": "Data"}, format="json").status_code == 201
    assert Project.objects.count() == 2
    assert not IdempotencyKey.objects.exists()


def test_a_fork_is_made_once(api, editor, session, reply):
    url = f"/api/v1/sessions/{session.pk}/fork/"
    first = api(editor).post(url, {}, format="json", **KEY).json()
    assert api(editor).post(url, {}, format="json", **KEY).json() == first
    assert Session.objects.count() == 2


def test_the_order_of_a_bodys_fields_is_nothing(api, owner, project):
    url = f"{PROJECTS}billing/sessions/"
    first = api(owner).post(url, {"title": "A", "pinned": True}, format="json", **KEY)
    response = api(owner).post(url, {"pinned": True, "title": "A"}, format="json", **KEY)
    assert response.json() == first.json()


def test_another_body_is_refused(api, owner):
    client = api(owner)
    assert client.post(PROJECTS, {"name": "Data"}, format="json", **KEY).status_code == 201
    other = client.post(PROJECTS, {"name": "Dates"}, format="json", **KEY)
    assert other.status_code == 422
    assert "another request" in other.json()["detail"]
    assert Project.objects.count() == 1


def test_another_place_is_refused(api, owner, project):
    client, body = api(owner), {"title": "The cutover", "name": "Data"}
    assert client.post(PROJECTS, body, format="json", **KEY).status_code == 201
    assert (
        client.post(f"{PROJECTS}billing/sessions/", body, format="json", **KEY).status_code == 422
    )


def test_a_key_is_its_users_alone(api, owner, stranger):
    for user in (owner, stranger):
        assert api(user).post(PROJECTS, {"name": "Data"}, format="json", **KEY).status_code == 201
    assert Project.objects.count() == 2


def test_a_key_belongs_to_the_project_that_the_token_opens(api, owner, project):
    url, body = f"{PROJECTS}billing/sessions/", {"title": "The cutover"}
    for token in ({}, {"project": project}):
        for _ in range(2):
            answer = api(owner, **token).post(url, body, format="json", **KEY)
            assert answer.status_code == 201
    assert Session.objects.count() == 2


def test_a_refused_request_may_be_repeated(api, owner, project, stranger):
    client, url = api(owner), f"{PROJECTS}billing/members/"
    assert client.post(PROJECTS, {}, format="json", **KEY).status_code == 400
    body = {"username": "stan", "role": "editor"}
    member = Membership.objects.create(project=project, user=stranger)
    assert client.post(url, body, format="json", **KEY).status_code == 400
    assert not IdempotencyKey.objects.exists()
    member.delete()
    assert client.post(url, body, format="json", **KEY).status_code == 201


def test_a_crash_leaves_neither_the_thing_nor_the_key(api, owner, monkeypatch):
    def die(*_):
        raise RuntimeError("the power went")

    client = api(owner)
    client.raise_request_exception = False
    with monkeypatch.context() as patched:
        patched.setattr(idempotency.KeyUse, "save", die)
        assert client.post(PROJECTS, {"name": "Data"}, format="json", **KEY).status_code == 500
    assert not Project.objects.exists()
    assert client.post(PROJECTS, {"name": "Data"}, format="json", **KEY).status_code == 201
    assert Project.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_repetition_before_the_first_commit_gets_409(api, owner):
    client, other = api(owner), connection.copy()
    use = idempotency.KeyUse.of(owner, None, ONE_KEY, "POST", PROJECTS, {"name": "Data"})
    # As the first would, on another connection.
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            lock = int.from_bytes(bytes.fromhex(use.key)[:8], signed=True)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
        double = client.post(PROJECTS, {"name": "Data"}, format="json", **KEY)
        assert double.status_code == 409
        assert double.headers["Retry-After"] == "1"
        assert "is running" in double.json()["detail"]
        other.rollback()
        assert client.post(PROJECTS, {"name": "Data"}, format="json", **KEY).status_code == 201
    finally:
        other.close()
    assert Project.objects.count() == 1


@pytest.mark.parametrize("key", ["", "two words", "ä", "a" * 256, "a\tb"])
def test_an_invalid_key_is_refused(api, owner, key):
    answer = api(owner).post(PROJECTS, {"name": "Data"}, format="json", HTTP_IDEMPOTENCY_KEY=key)
    assert answer.status_code == 400
    assert "255" in answer.json()["detail"]
    assert not Project.objects.exists()


def test_no_text_is_kept_and_nothing_that_tells_it(api, editor, session):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    body = {"content": "The vault opens with 4711.", "reply": False}
    api(editor).post(url, body, format="json", **KEY)
    [row] = IdempotencyKey.objects.values()
    assert row["made"] == {"message": str(Message.objects.get().pk), "reply": None}
    assert "vault" not in str(row) and ONE_KEY not in str(row)
    assert {len(row["key"]), len(row["request"])} == {64}


def test_a_file_is_imported_once(api, editor, project, settings):
    # Larger than what is kept in memory.
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 100
    line = (
        b'{"session": "a", "role": "user", "content": "Once.", "created_at": "2026-03-01T09:00Z"}\n'
    )

    def send(content: bytes):
        file = SimpleUploadedFile("talk.jsonl", content)
        url = f"{PROJECTS}billing/imports/"
        return api(editor).post(url, {"file": file, "format": "jsonl"}, format="multipart", **KEY)

    first, response = send(line * 9), send(line * 9)
    assert (first.status_code, response.status_code) == (202, 202), first.content
    assert response.json()["id"] == first.json()["id"]
    assert send(line * 8 + line.replace(b"Once", b"Ones")).status_code == 422
    assert Import.objects.count() == 1
    with Import.objects.get().file.open("rb") as stored_file:
        assert stored_file.read() == line * 9


def test_an_image_is_uploaded_once(api, editor, session):
    url = f"/api/v1/sessions/{session.pk}/attachments/"

    def send():
        file = SimpleUploadedFile("a.png", picture())
        return api(editor).post(url, {"file": file}, format="multipart", **KEY)

    first, response = send(), send()
    assert (first.status_code, response.status_code) == (201, 201), first.content
    assert response.json() == first.json()
    assert Attachment.objects.count() == 1


def test_a_deleted_object_is_reported_as_deleted(api, owner, project):
    url, body = f"{PROJECTS}billing/sessions/", {"title": "The cutover"}
    payload = api(owner).post(url, body, format="json", **KEY).json()
    api(owner).delete(f"/api/v1/sessions/{payload['id']}/")
    response = api(owner).post(url, body, format="json", **KEY)
    assert response.status_code == 410
    assert Session.objects.not_deleted().count() == 0


def test_forgotten_text_is_not_repeated(api, owner, project, session):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    body = {"content": "The vault opens with 4711.", "reply": False}
    details = api(owner).post(url, body, format="json", **KEY).json()["message"]
    with transaction.atomic():
        forget(project, ForgetScope(message=details["id"]), owner)
    response = api(owner).post(url, body, format="json", **KEY)
    assert response.status_code == 410
    assert "vault" not in response.content.decode()
    assert session.messages.exclude(forgotten_at=None).count() == session.messages.count() == 1


def test_a_former_member_gets_nothing(api, editor, project):
    url, body = f"{PROJECTS}billing/sessions/", {"title": "The cutover"}
    assert api(editor).post(url, body, format="json", **KEY).status_code == 201
    project.memberships.filter(user=editor).delete()
    response = api(editor).post(url, body, format="json", **KEY)
    assert response.status_code == 410
    assert "cutover" not in response.content.decode()


def test_a_key_is_kept_for_a_day(api, owner):
    client, body = api(owner), {"name": "Data"}
    client.post(PROJECTS, body, format="json", **KEY)
    now = timezone.now()
    for age, expected_count in (
        (timedelta(hours=23, minutes=59), 1),
        (timedelta(hours=24, minutes=1), 0),
    ):
        IdempotencyKey.objects.update(created_at=now - age)
        tasks.clear()
        assert IdempotencyKey.objects.count() == expected_count


def test_an_expired_key_may_be_used_again_before_it_is_cleared(api, owner):
    client = api(owner)
    client.post(PROJECTS, {"name": "Data"}, format="json", **KEY)
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    for is_repeated in (False, True):
        response = client.post(PROJECTS, {"name": "Tides"}, format="json", **KEY)
        assert response.status_code == 201
        assert ("Idempotent-Replayed" in response) == is_repeated
    assert Project.objects.filter(name="Tides").count() == 1


def test_the_beat_clears_keys():
    from django_celery_beat.models import PeriodicTask

    assert PeriodicTask.objects.filter(task="projects.tasks.clear", enabled=True).exists()
