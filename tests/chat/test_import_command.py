"""Importing into a project: the command, and what it leaves in the database."""

import io
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from chat.importers import ImportRejectedError, import_file
from chat.models import Message, Session, Visibility
from projects.models import Membership
from projects.services import create_project
from tests.chat.test_import_locomo import TALK

pytestmark = pytest.mark.django_db

NOON = datetime(2025, 3, 3, 12, tzinfo=UTC)


def lines(*texts: str, session: str = "standup", author: str = "Ann") -> str:
    """A file of messages, a minute apart."""
    return "".join(
        json.dumps(
            {
                "session": session,
                "role": "user",
                "content": text,
                "created_at": (NOON + timedelta(minutes=minute)).isoformat(),
                "author": author,
            }
        )
        + "\n"
        for minute, text in enumerate(texts)
    )


@pytest.fixture
def talk(tmp_path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK))
    return path


@pytest.fixture
def standup(tmp_path) -> Path:
    path = tmp_path / "standup.jsonl"
    path.write_text(lines("One", "Two"))
    return path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(
    *files: Path | str, owner: str = "olive", project: str = "billing", err=None
) -> tuple[str, str]:
    """What the command wrote to standard output and standard error."""
    out, err = io.StringIO(), err or io.StringIO()
    call_command(
        "import_conversations",
        *map(str, files),
        owner=owner,
        project=project,
        stdout=out,
        stderr=err,
    )
    return out.getvalue(), err.getvalue()


def test_files_are_imported_and_counted(project, talk, standup):
    out, err = run(talk, standup)
    assert out.splitlines() == [
        "talk.json: 3 sessions, 4 messages imported, 0 skipped, 0 refused",
        "standup.jsonl: 1 sessions, 2 messages imported, 0 skipped, 0 refused",
    ]
    assert err == ""


def test_a_second_import_adds_nothing(project, talk):
    run(talk)
    renamed = talk.rename(talk.with_name("renamed.json"))
    before = list(Session.objects.order_by("pk").values())
    out, _ = run(renamed)
    assert out == "renamed.json: 3 sessions, 0 messages imported, 4 skipped, 0 refused\n"
    assert list(Session.objects.order_by("pk").values()) == before
    assert Message.objects.count() == 4


def test_old_talk_keeps_its_times_and_is_shared_with_the_project(project, owner, standup):
    run(standup)
    session = Session.objects.get()
    assert (session.project, session.creator, session.title) == (project, owner, "standup")
    assert session.visibility == Visibility.PROJECT
    assert session.created_at == NOON
    assert session.last_activity_at == NOON + timedelta(minutes=1)
    assert session.last_seq == 2
    [first, second] = session.messages.order_by("seq")
    assert (first.text, first.created_at, first.author_name) == ("One", NOON, "Ann")
    assert second.parent_id == first.pk
    assert session.head_id == second.pk
    assert first.tokens == 1


def test_a_file_speaks_for_its_importer_alone(project, owner, editor):
    file = io.BytesIO((lines("One", author="edgar") + lines("Two", author="olive")).encode())
    import_file(project, owner, "x.jsonl", file)
    [edgar, olive] = Message.objects.order_by("seq")
    assert (edgar.author, edgar.author_name) == (None, "edgar")
    assert (olive.author, olive.author_name) == (owner, "")


def test_an_operator_may_match_the_members(project, owner, editor, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(lines("One", author="edgar") + lines("Two", author="stan"))
    run(path, "--match-members")
    [edgar, stan] = Message.objects.order_by("seq")
    assert (edgar.author, edgar.author_name) == (editor, "")
    assert (stan.author, stan.author_name) == (None, "stan")


def test_an_assistant_is_never_a_member(project, owner):
    content = lines("One", author="olive").replace('"user"', '"assistant"')
    import_file(project, owner, "x.jsonl", io.BytesIO(content.encode()))
    assert Message.objects.get().author is None
    assert Message.objects.get().speaker == "olive"


def test_names_longer_than_their_columns_are_cut(project, owner):
    content = lines("One", session="s" * 400, author="a" * 400)
    import_file(project, owner, "x.jsonl", io.BytesIO(content.encode()))
    repeated_import = import_file(project, owner, "x.jsonl", io.BytesIO(content.encode()))
    assert repeated_import.skipped == 1
    assert len(Session.objects.get().title) == 200
    assert len(Message.objects.get().author_name) == 120


def test_two_projects_may_import_the_same_file(project, owner, talk):
    create_project(owner, name="Other", slug="other")
    run(talk)
    out, _ = run(talk, project="other")
    assert "4 messages imported" in out


def test_an_editor_may_import(project, editor, standup):
    out, _ = run(standup, owner="edgar")
    assert "2 messages imported" in out


@pytest.mark.parametrize(
    ("owner_name", "slug", "reason"),
    [
        ("vera", "billing", "“vera” is no owner or editor of a project “billing”."),
        ("stan", "billing", "“stan” is no owner or editor of a project “billing”."),
        ("olive", "nowhere", "“olive” is no owner or editor of a project “nowhere”."),
        ("nobody", "billing", "There is no user “nobody”."),
    ],
)
def test_an_import_without_the_right_to_write_is_refused(
    project, viewer, stranger, standup, owner_name, slug, reason
):
    with pytest.raises(CommandError) as refusal:
        run(standup, owner=owner_name, project=slug)
    assert str(refusal.value) == reason
    assert not Session.objects.exists()


def test_a_private_chat_gets_nothing_from_the_imports_of_others(project, owner, editor):
    import_file(project, editor, "x.jsonl", io.BytesIO(lines("One").encode()))
    Session.objects.update(visibility=Visibility.PRIVATE)
    result = import_file(project, owner, "x.jsonl", io.BytesIO(lines("One", "Two").encode()))
    assert (result.sessions, result.imported, result.refused) == (0, 0, 1)
    assert result.errors == ["The chat of 2025-03-03 12:00 is private to another member."]
    mine = import_file(project, editor, "x.jsonl", io.BytesIO(lines("One", "Two").encode()))
    assert (mine.imported, mine.skipped) == (1, 1)


def test_a_file_that_cannot_be_read_costs_only_itself(project, standup, tmp_path):
    missing, folder, strange = tmp_path / "missing.json", tmp_path, tmp_path / "notes.txt"
    strange.write_text("Dear diary")
    with pytest.raises(CommandError) as failure:
        run(missing, folder, strange, standup)
    assert str(failure.value).splitlines() == [
        f"{missing}: No such file or directory",
        f"{folder}: Is a directory",
        f"{strange}: It has none of the formats: {', '.join(settings.CHAT_IMPORTERS)}",
    ]
    assert Message.objects.count() == 2


def test_refused_lines_are_named(project, tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text(lines("One") + "nonsense\n" * 120)
    out, err = run(path)
    assert out == "some.jsonl: 1 sessions, 1 messages imported, 0 skipped, 120 refused\n"
    assert err.splitlines()[0] == "  Line 2: It is not JSON."
    assert err.splitlines()[-1] == "  and 20 more"
    assert len(err.splitlines()) == 101


def test_a_named_format_is_used_whatever_the_file_looks_like(project, owner, talk):
    with (
        pytest.raises(ImportRejectedError, match="no line that is a message"),
        talk.open("rb") as file,
    ):
        import_file(project, owner, "talk.json", file, "jsonl")
    with (
        pytest.raises(ImportRejectedError, match="is not one of the formats"),
        talk.open("rb") as file,
    ):
        import_file(project, owner, "talk.json", file, "telegram")


def test_a_terminal_sees_a_bar_that_goes_away(project, standup):
    _, err = run(standup, err=Terminal())
    assert "standup.jsonl ━" in err
    assert "100 %" in err
    assert err.endswith("\r\x1b[K")


def test_progress_is_counted_in_messages(project, owner):
    reports = []
    content = "".join(lines("One", "Two", session=str(n)) for n in range(600)).encode()
    import_file(
        project, owner, "x.jsonl", io.BytesIO(content), progress=lambda *step: reports.append(step)
    )
    assert reports == [(1000, 1200), (1200, 1200)]


def test_many_conversations_take_few_queries(project, owner, django_assert_max_num_queries):
    content = "".join(lines("One", session=str(n)) for n in range(50)).encode()
    import_file(project, owner, "x.jsonl", io.BytesIO(content))
    with django_assert_max_num_queries(7):
        import_file(project, owner, "x.jsonl", io.BytesIO(content))


@pytest.mark.django_db(transaction=True)
def test_the_same_file_imported_at_once_is_written_once(project, owner):
    content = "".join(lines("One", "Two", session=str(n)) for n in range(20)).encode()
    results = []

    def work() -> None:
        results.append(import_file(project, owner, "x.jsonl", io.BytesIO(content)))
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(result.imported for result in results) == [0, 0, 0, 40]
    assert Session.objects.count() == 20
    assert Message.objects.count() == 40


def test_a_membership_is_not_made_by_importing(project, owner):
    import_file(project, owner, "x.jsonl", io.BytesIO(lines("One", author="stan").encode()))
    assert Membership.objects.count() == 1
