"""A session as a file, and back again."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from chat import exporters
from chat.conversations.messages import PresetPlaces, draft, post_message, post_messages
from chat.importers import ImportRejectedError, import_file
from chat.models import (
    FINAL,
    Message,
    Role,
    Session,
    SessionKind,
    SessionStatus,
    Status,
    Visibility,
)
from projects.models import Membership, Project
from projects.services import create_project

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(
        project=project, creator=owner, title="The cutover", created_at=NOON
    )


@pytest.fixture
def talk(session, owner) -> Session:
    """Two answers to one question, of which the first counts, and a question after it."""
    question = post_message(session, "When?", author=owner, created_at=NOON)
    later = NOON + timedelta(minutes=1)
    first = draft("At nine.", role=Role.ASSISTANT, parent=question, created_at=later, model="x:y")
    second = draft("At ten.", role=Role.ASSISTANT, parent=question, created_at=later)
    post_messages(session, [first, second], at=PresetPlaces(first.pk))
    post_message(session, "Sure?", author_name="Ann", created_at=later)
    session.refresh_from_db()
    return session


def exported(session: Session, format: str = "json") -> bytes:
    session.refresh_from_db()
    return b"".join(exporters.export(session, format))


def exported_fields(session: Session) -> dict:
    """What its JSON says, with places for ids."""
    fields = json.loads(exported(session))
    places = {message["id"]: place for place, message in enumerate(fields["messages"])}
    for message in fields["messages"]:
        message["id"], message["parent"] = places[message["id"]], places.get(message["parent"])
    fields["session"]["id"] = None
    fields["session"]["head"] = places.get(fields["session"]["head"])
    return fields


def brought(project: Project, user, written: bytes) -> Session:
    """The session that the import of an export makes."""
    import_file(project, user, "chat.json", io.BytesIO(written))
    return Session.objects.get(project=project)


@pytest.mark.django_db
def test_json_tells_everything_with_its_versions(talk):
    fields = json.loads(exported(talk))
    [message, first, second, sure] = fields["messages"]
    assert (fields["format"], fields["version"]) == ("strata-session", 1)
    assert fields["session"] == {
        "id": str(talk.pk),
        "kind": "chat",
        "title": "The cutover",
        "visibility": "project",
        "remembered": True,
        "status": "active",
        "created_at": "2025-03-03T12:00:00+00:00",
        "title_by_hand": False,
        "pinned": False,
        "archived_at": None,
        "history_limit": None,
        "chat_model": "",
        "temperature": None,
        "reasoning_effort": "",
        "tags": [],
        "head": sure["id"],
    }
    assert (message["author"], message["content"], message["parent"]) == ("olive", "When?", None)
    assert first["parent"] == second["parent"] == message["id"]
    assert (sure["parent"], sure["author"], first["model"]) == (first["id"], "Ann", "x:y")


@pytest.mark.django_db
def test_a_deleted_message_leaves_only_its_place(talk):
    talk.messages.filter(text="When?").update(deleted_at=NOON)
    payload = json.loads(exported(talk))["messages"][0]
    assert (payload["content"], payload["deleted_at"]) == ("", "2025-03-03T12:00:00+00:00")
    page = exported(talk, "markdown").decode()
    assert "When?" not in page
    assert "*This message was deleted on 2025-03-03 12:00 UTC.*" in page


@pytest.mark.django_db
def test_markdown_reads_as_the_page_does(talk):
    Project.objects.update(timezone="Europe/Berlin")
    talk = Session.objects.get(pk=talk.pk)
    assert exported(talk, "markdown").decode() == (
        "# The cutover\n\nBilling\n"
        "\n## olive · 2025-03-03 13:00 CET\n\nWhen?\n"
        "\n## Assistant · 2025-03-03 13:01 CET\n\nAt nine.\n"
        "\n## Ann · 2025-03-03 13:01 CET\n\nSure?\n"
    )


@pytest.mark.django_db
def test_exports_show_who_recorded_a_message_in_another_name(session, editor, owner):
    post_message(session, "Recorded.", author=editor, author_name="Ana", created_at=NOON)
    post_message(session, "Reply.", author=editor, role="assistant", created_at=NOON)
    text = exported(session, "markdown").decode()
    assert "## Ana · recorded by edgar · 2025-03-03 12:00 UTC" in text
    assert "## Assistant · recorded by edgar · 2025-03-03 12:00 UTC" in text
    fields = json.loads(exported(session))["messages"]
    assert [(it["author"], it["recorded_by"]) for it in fields] == [("Ana", "edgar"), ("", "edgar")]


@pytest.mark.django_db
def test_markdown_lists_the_tags(session):
    assert "Tags:" not in exported(session, "markdown").decode()
    session.tags = ["billing", "release"]
    session.save()
    assert "\nTags: billing, release\n" in exported(session, "markdown").decode()


@pytest.mark.django_db
def test_markdown_says_how_a_reply_ended(session):
    post_message(session, "So", role=Role.ASSISTANT, status=Status.STOPPED)
    post_message(session, "", role=Role.ASSISTANT, status=Status.FAILED, error="No\nanswer.")
    page = exported(session, "markdown").decode()
    assert "So\n\n*This reply was stopped.*" in page
    assert "*This reply failed: No answer.*" in page


@pytest.mark.django_db
def test_a_long_session_takes_few_queries_at_a_time(session, django_assert_num_queries):
    post_messages(session, [draft("x" * 100, created_at=NOON) for _ in range(450)])
    session.refresh_from_db()
    # Three pages of messages with images, earlier texts and reactions, and one that is empty.
    with django_assert_num_queries(13):
        assert len(json.loads(b"".join(exporters.export(session, "json")))["messages"]) == 450
    with django_assert_num_queries(8):  # the path and the project's name, too
        assert b"".join(exporters.export(session, "markdown")).count(b"\n## ") == 450


@pytest.mark.django_db
def test_a_file_has_a_name_that_every_system_takes(session):
    session.title = "Où? / ../../etc: „CON“\r\n" + "x" * 200
    name = exporters.file_name(session, "markdown")
    assert name.startswith("où-etc-con-xxx")
    assert name.endswith("x-2025-03-03.md")
    assert len(name) < 80
    session.title = "…"
    assert exporters.file_name(session, "json") == "chat-2025-03-03.json"
    session.project.timezone = "Pacific/Kiritimati"
    assert exporters.file_name(session, "json") == "chat-2025-03-04.json"


@pytest.mark.django_db
def test_it_comes_back_as_it_was(talk, owner, person):
    other = create_project(owner, name="Other", slug="other")
    talk.messages.filter(text="At ten.").update(
        status=Status.FAILED, error="Too late.", edited_at=NOON, remembered=False
    )
    copy = brought(other, owner, exported(talk))
    assert exported_fields(copy) == exported_fields(talk)
    assert (copy.creator, copy.last_seq) == (owner, 4)
    assert copy.messages.get(text="When?").author == owner


@pytest.mark.django_db
def test_an_author_who_is_no_member_keeps_the_name(talk, person):
    stan = person("stan")
    elsewhere = create_project(stan, name="Elsewhere", slug="elsewhere")
    copy = brought(elsewhere, stan, exported(talk))
    assert exported_fields(copy) == exported_fields(talk)
    question = copy.messages.get(text="When?")
    assert (question.author, question.author_name) == (None, "olive")


@pytest.mark.django_db
def test_it_adds_nothing_where_it_is_already(talk, owner):
    written = exported(talk)
    result = import_file(talk.project, owner, "chat.json", io.BytesIO(written))
    assert (result.imported, result.skipped) == (0, 4)
    assert Session.objects.count() == 1
    other = create_project(owner, name="Other", slug="other")
    brought(other, owner, written)
    repeated_import = import_file(other, owner, "chat.json", io.BytesIO(written))
    assert (repeated_import.imported, repeated_import.skipped) == (0, 4)


@pytest.mark.django_db
def test_a_private_chat_of_somebody_else_gets_nothing(talk, editor):
    Session.objects.update(visibility=Visibility.PRIVATE)
    written = exported(talk).replace(b"Sure?", b"Sure!")
    result = import_file(talk.project, editor, "chat.json", io.BytesIO(written))
    assert (result.imported, result.refused) == (0, 1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": SessionStatus.CLOSED}, "is closed"),
        ({"kind": SessionKind.NOTES}, "has the notes of another member"),
        ({"deleted_at": NOON}, "was deleted"),
    ],
)
def test_a_chat_that_the_importer_may_not_post_to_gets_nothing(talk, editor, fields, reason):
    Session.objects.update(**fields)
    written = exported(talk)
    again = import_file(talk.project, editor, "chat.json", io.BytesIO(written))
    assert (again.imported, again.skipped, again.errors) == (0, 4, [])
    added = json.loads(written)
    added["messages"].append(added["messages"][0] | {"id": "another"})
    forged = json.dumps(added).encode()
    result = import_file(talk.project, editor, "chat.json", io.BytesIO(forged))
    assert (result.imported, result.refused) == (0, 1)
    assert result.errors == [f"The chat of 2025-03-03 12:00 {reason}."]
    assert talk.messages.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize("fields", [{"status": SessionStatus.CLOSED}, {"kind": SessionKind.NOTES}])
def test_importers_continue_their_own_chats(talk, owner, fields):
    Session.objects.update(**fields)
    added = json.loads(exported(talk))
    added["messages"].append(added["messages"][0] | {"id": "another"})
    result = import_file(talk.project, owner, "chat.json", io.BytesIO(json.dumps(added).encode()))
    assert (result.imported, result.skipped, result.errors) == (1, 4, [])


@pytest.mark.django_db
def test_a_running_reply_comes_back_interrupted(session, owner):
    post_message(session, "So far", role=Role.ASSISTANT, status=Status.STREAMING)
    other = create_project(owner, name="Other", slug="other")
    assert brought(other, owner, exported(session)).messages.get().status == Status.INTERRUPTED


@pytest.mark.django_db
def test_an_export_of_another_version_is_refused(talk, owner):
    newer = exported(talk).replace(b'"version": 1', b'"version": 2')
    with pytest.raises(ImportRejectedError, match="not read its version, 2"):
        import_file(talk.project, owner, "chat.json", io.BytesIO(newer))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "damage", [7, {}, {"id": "x", "role": "robot"}, {"id": "x", "role": "user"}]
)
def test_a_damaged_message_costs_only_itself(talk, owner, damage):
    fields = json.loads(exported(talk))
    fields["messages"].insert(1, damage)
    other = create_project(owner, name="Other", slug="other")
    result = import_file(other, owner, "chat.json", io.BytesIO(json.dumps(fields).encode()))
    assert (result.imported, result.refused) == (4, 1)


MOMENTS = st.datetimes(datetime(2001, 1, 1), datetime(2025, 1, 1), timezones=st.just(UTC))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
DRAFTS = st.fixed_dictionaries(
    {
        "text": TEXTS,
        "role": st.sampled_from(Role.values),
        "author_name": TEXTS,
        "status": st.sampled_from(FINAL),
        "error": TEXTS,
        "model": TEXTS,
        "version": st.integers(1, 9),
        "input_tokens": st.none() | st.integers(0, 2**31 - 1),
        "output_tokens": st.none() | st.integers(0, 2**31 - 1),
        "first_token_ms": st.none() | st.integers(0, 2**31 - 1),
        "cost": st.none() | st.decimals(0, 999_999, places=6),
        "remembered": st.booleans(),
        "created_at": MOMENTS,
        "edited_at": st.none() | MOMENTS,
        "deleted_at": st.none() | MOMENTS,
    }
)
SESSIONS = st.fixed_dictionaries(
    {
        "title": TEXTS.filter(bool),
        "visibility": st.sampled_from(Visibility.values),
        "status": st.sampled_from(SessionStatus.values),
        "remembered": st.booleans(),
        "created_at": MOMENTS,
        "title_by_hand": st.booleans(),
        "pinned": st.booleans(),
        "archived_at": st.none() | MOMENTS,
        "history_limit": st.none() | st.integers(50, 1_000),
    }
)


@pytest.mark.django_db
@examples(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(SESSIONS, st.lists(DRAFTS, min_size=1, max_size=6), st.data())
def test_any_message_comes_back_unchanged(project, owner, fields, lines, data):
    session = Session.objects.create(project=project, creator=owner, **fields)
    drafts: list[Message] = []
    for line in lines:
        parent = data.draw(st.sampled_from([None, *drafts]))
        drafts.append(draft(**line, parent=parent))
    head = data.draw(st.sampled_from([None, *drafts]))
    post_messages(session, drafts, at=PresetPlaces(head.pk if head else None))
    other = create_project(owner, name="Other")
    copy = brought(other, owner, exported(session))
    assert exported_fields(copy) == exported_fields(session)
    other.delete()


@pytest.mark.django_db(transaction=True)
class TestDownload:
    """By the API and by the page, streamed as under ASGI."""

    def fetch(self, url: str, **credentials) -> tuple[object, bytes]:
        async def talk():
            client = AsyncClient()
            if user := credentials.pop("user", None):
                await client.aforce_login(user)
            answer = await client.get(url, headers=credentials)
            body = b""
            if answer.streaming:
                body = b"".join([part async for part in answer.streaming_content])
            return answer, body

        return async_to_sync(talk)()

    def token(self, user) -> str:
        from projects.models import Token

        return f"Bearer {Token.objects.create(user=user)[1]}"

    @pytest.mark.parametrize(
        ("format", "kind", "suffix"),
        [("markdown", "text/markdown; charset=utf-8", "md"), ("json", "application/json", "json")],
    )
    def test_the_api_gives_a_file(self, talk, viewer, format, kind, suffix):
        url = f"/api/v1/sessions/{talk.pk}/export/?format={format}"
        answer, body = self.fetch(url, authorization=self.token(viewer))
        assert answer.status_code == 200
        assert answer["Content-Type"] == kind
        named = f'attachment; filename="the-cutover-2025-03-03.{suffix}"'
        assert answer["Content-Disposition"] == named
        assert body == exported(talk, format)

    def test_a_stranger_gets_none(self, talk, stranger, editor):
        url = f"/api/v1/sessions/{talk.pk}/export/"
        assert self.fetch(url, authorization=self.token(stranger))[0].status_code == 404
        Session.objects.update(visibility=Visibility.PRIVATE)
        assert self.fetch(url, authorization=self.token(editor))[0].status_code == 404
        assert self.fetch(url)[0].status_code == 401

    def test_a_format_that_is_none_is_refused(self, talk, owner):
        url = f"/api/v1/sessions/{talk.pk}/export/?format=docx"
        answer, _ = self.fetch(url, authorization=self.token(owner))
        assert (answer.status_code, answer.json()) == (400, {"format": ["One of markdown, json."]})

    def test_the_page_gives_a_file_too(self, talk, viewer, stranger):
        url = f"/projects/billing/chats/{talk.pk}/export/?format=json"
        answer, body = self.fetch(url, user=viewer)
        assert body == exported(talk)
        assert self.fetch(url, user=stranger)[0].status_code == 404
        assert self.fetch(url.replace("billing", "other"), user=viewer)[0].status_code == 404
        assert self.fetch(url.replace("json", "docx"), user=viewer)[0].status_code == 404
        assert self.fetch(url)[0].status_code == 302


@pytest.mark.django_db
def test_other_members_are_speakers_by_name_in_the_copy(talk, owner, editor):
    other = create_project(owner, name="Other", slug="other")
    Membership.objects.create(project=other, user=editor)
    post_message(talk, "Mine", author=editor, created_at=NOON)
    message = brought(other, owner, exported(talk)).messages.get(text="Mine")
    assert (message.author, message.speaker) == (None, "edgar")
