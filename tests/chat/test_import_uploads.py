"""Uploaded files: by the API, by the page, and what the task makes of them."""

import errno
import io
import json
import logging
import os
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from chat import tasks
from chat.importers import ImportRejectedError, jobs
from chat.importers.writer import ImportWriter
from chat.models import Import, ImportState, Message, Session
from projects.models import Membership
from tests.chat.exports import BRANCHES, file_of, zip_of
from tests.chat.test_import_command import lines
from tests.torture.running_strata import eventually

END_OTHER_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
URL = "/api/v1/projects/billing/imports/"
PAGE = "/projects/billing/imports/"


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[str]:
    """The imports that a worker was told of."""
    reports: list[str] = []
    monkeypatch.setattr(
        "chat.importers.jobs.current_app.send_task", lambda name, args: reports.append(args[0])
    )
    return reports


def upload(content: bytes = b"", name: str = "conversations.json") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content or file_of(BRANCHES).read())


def connections_in_use() -> int:
    stats = connection.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def raiser(error: type[Exception] | Exception):
    def fail(*args, **kwargs):
        raise error

    return fail


@pytest.fixture
def waiting(project, editor) -> Import:
    return jobs.create_import(project, editor, upload())


def stored(import_job: Import) -> bool:
    return default_storage.exists(f"imports/{import_job.project_id}/{import_job.pk}")


@pytest.mark.django_db
class TestApi:
    def test_an_upload_that_the_database_refuses_leaves_no_file(self, project, editor, monkeypatch):
        monkeypatch.setattr(Import, "save", raiser(OperationalError))
        with pytest.raises(OperationalError):
            jobs.create_import(project, editor, upload())
        assert not default_storage.listdir(f"imports/{project.pk}")[1]

    def test_a_user_has_three_unfinished_imports(self, api, project, editor):
        for _ in range(3):
            jobs.create_import(project, editor, upload())
        answer = api(editor).post(URL, {"file": upload()}, format="multipart")
        assert answer.status_code == 429
        assert answer["Retry-After"] == "60"
        assert "3 imports" in answer.json()["file"][0]
        assert Import.objects.count() == 3

    def test_an_editor_uploads_a_file_and_sees_what_became_of_it(
        self, api, project, editor, sent, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            answer = api(editor).post(URL, {"file": upload()}, format="multipart")
        assert answer.status_code == 202
        payload = answer.json()
        assert (payload["state"], payload["progress"], payload["name"]) == (
            "waiting",
            0,
            "conversations.json",
        )
        assert sent == [payload["id"]]
        tasks.run_import(payload["id"])
        done = api(editor).get(f"{URL}{payload['id']}/").json()
        assert done == payload | {
            "state": "done",
            "progress": 100,
            "sessions": 1,
            "imported": 13,
            "finished_at": done["finished_at"],
        }
        assert done["finished_at"]
        assert [result["id"] for result in api(editor).get(URL).json()["results"]] == [
            payload["id"]
        ]

    def test_statistics_include_what_a_large_import_added(self, waiting, monkeypatch):
        """Otherwise prepared statements keep plans for small tables."""
        monkeypatch.setattr(jobs, "MIN_ANALYZED_MESSAGES", 13)
        tasks.run_import(str(waiting.pk))
        with connection.cursor() as cursor:
            cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'chat_message'")
            assert cursor.fetchone() == (Message.objects.count(),)

    def test_a_zip_file_and_a_named_format(self, api, project, owner):
        whole = zip_of({"conversations.json": file_of(BRANCHES).read()}).read()
        fields = {"file": upload(whole, "export.zip"), "format": "chatgpt"}
        answer = api(owner).post(URL, fields, format="multipart")
        assert (answer.status_code, answer.json()["format"]) == (202, "chatgpt")

    def test_viewers_and_strangers_get_404(self, api, project, viewer, stranger, waiting):
        for user in (viewer, stranger):
            client = api(user)
            assert client.get(URL).status_code == 404
            assert client.get(f"{URL}{waiting.pk}/").status_code == 404
            answer = client.post(URL, {"file": upload()}, format="multipart")
            assert answer.status_code == 404
        assert Import.objects.count() == 1

    def test_others_do_not_see_it(self, api, owner, waiting):
        assert api(owner).get(URL).json()["results"] == []
        assert api(owner).get(f"{URL}{waiting.pk}/").status_code == 404

    def test_a_token_for_reading_or_for_another_project_uploads_nothing(self, api, project, owner):
        reading = api(owner, scopes=["read"])
        assert reading.post(URL, {"file": upload()}, format="multipart").status_code == 403

    @pytest.mark.parametrize(
        ("content", "name", "reason"),
        [
            (b"Dear diary", "diary.txt", "It has none of the formats"),
            (b"PK\x03\x04 and so on", "export.zip", "The zip file is damaged or not complete."),
            (b"[]", "export.zip", "Its name ends in .zip, but it is not a zip file."),
        ],
    )
    def test_a_bad_file_is_refused_at_once(self, api, project, owner, content, name, reason):
        answer = api(owner).post(URL, {"file": upload(content, name)}, format="multipart")
        assert answer.status_code == 400
        assert answer.json()["file"][0].startswith(reason)
        assert not Import.objects.exists()

    def test_a_file_that_is_too_large_is_refused(self, api, project, owner, settings):
        settings.MAX_UPLOAD_MB = 1
        large = upload(b" " * (2**20 + 1))
        answer = api(owner).post(URL, {"file": large}, format="multipart")
        assert answer.json() == {"file": ["It is larger than 1 MB."]}

    @pytest.mark.parametrize(
        ("fields", "field"), [({}, "file"), ({"file": upload(), "format": "docx"}, "format")]
    )
    def test_an_invalid_upload_is_refused_by_field(self, api, project, owner, fields, field):
        answer = api(owner).post(URL, fields, format="multipart")
        assert answer.status_code == 400
        assert list(answer.json()) == [field]

    def test_json_is_no_upload(self, api, project, owner):
        assert api(owner).post(URL, {"file": "x"}, format="json").status_code == 415


@pytest.mark.django_db
class TestTask:
    def test_it_imports_and_removes_the_file(self, waiting, django_capture_on_commit_callbacks):
        assert stored(waiting)
        with django_capture_on_commit_callbacks(execute=True):
            tasks.run_import(str(waiting.pk))
        waiting.refresh_from_db()
        assert (waiting.state, waiting.progress, waiting.imported) == ("done", 100, 13)
        assert waiting.finished_at
        assert (waiting.file.name, stored(waiting)) == ("", False)
        assert Session.objects.get().creator == waiting.user

    def test_run_twice_it_changes_nothing(self, waiting):
        tasks.run_import(str(waiting.pk))
        before = list(Import.objects.values())
        tasks.run_import(str(waiting.pk))
        assert list(Import.objects.values()) == before
        assert Message.objects.count() == 13

    def test_one_that_is_gone_is_passed_over(self, waiting):
        import_id = str(waiting.pk)
        waiting.delete()
        tasks.run_import(import_id)
        assert not Message.objects.exists()

    def test_reasons_are_shown(self, project, owner):
        content = lines("One").encode() + b"nonsense\n" * 120
        import_job = jobs.create_import(project, owner, upload(content, "talk.jsonl"))
        jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert (
            import_job.state,
            import_job.imported,
            import_job.refused,
            len(import_job.errors),
        ) == ("done", 1, 120, 100)
        assert import_job.errors[0] == "Line 2: It is not JSON."

    def test_a_reason_that_quotes_the_file_can_be_stored(self, project, owner):
        damaged = {
            "id": "c",
            "create_time": 1,
            "mapping": {"a\0\ud800" + "x" * 999: {"message": 7}},
        }
        content = json.dumps([damaged | {"children": 1}, BRANCHES]).encode()
        import_job = jobs.create_import(project, owner, upload(content), "chatgpt")
        jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert (import_job.state, import_job.imported, len(import_job.errors)) == ("done", 13, 1)
        assert len(import_job.errors[0]) == 300

    def test_a_file_that_holds_nothing_fails_with_the_reason(
        self, project, owner, django_capture_on_commit_callbacks
    ):
        import_job = jobs.create_import(
            project, owner, upload(b'[{"mapping": {"children": 1', "x.json")
        )
        with django_capture_on_commit_callbacks(execute=True):
            jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert (import_job.state, import_job.imported) == ("failed", 0)
        assert import_job.errors[0].startswith("It contains no conversation.")
        assert not stored(import_job)

    def test_a_file_that_is_gone_fails_with_the_reason(self, waiting):
        default_storage.delete(waiting.file.name)
        jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert (waiting.state, waiting.errors) == ("failed", ["The uploaded file is gone."])

    def test_a_demoted_member_imports_nothing(self, waiting):
        Membership.objects.filter(user=waiting.user).update(role="viewer")
        jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.errors == ["You may no longer write in this project."]
        assert not Message.objects.exists()

    def test_an_internal_error_is_shown_and_logged(self, waiting, monkeypatch, caplog):
        def fail(*_args):
            raise ZeroDivisionError

        monkeypatch.setattr("chat.importers.jobs.import_file", fail)
        with caplog.at_level(logging.ERROR, "chat.importers.jobs"):
            jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.errors == ["Strata itself failed while importing."]
        assert "import_failed" in caplog.text

    def test_a_task_out_of_time_leaves_the_rest_to_the_next(
        self, project, owner, sent, monkeypatch
    ):
        content = "".join(lines("One", "Two", session=str(n)) for n in range(600)).encode()
        import_job = jobs.create_import(project, owner, upload(content, "talk.jsonl"))
        clock = iter([0.0, 1.0, 700.0])
        monkeypatch.setattr(
            "chat.importers.jobs.time", SimpleNamespace(monotonic=lambda: next(clock))
        )
        tasks.run_import(str(import_job.pk))
        import_job.refresh_from_db()
        assert (import_job.state, import_job.imported, import_job.progress) == ("running", 1000, 83)
        assert sent == [str(import_job.pk)]
        clock = iter([0.0, 1.0, 2.0])
        jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert (import_job.state, import_job.imported, import_job.skipped) == ("done", 1200, 0)
        assert Message.objects.count() == 1200

    def test_a_refused_file_is_not_kept(self, project, owner):
        with pytest.raises(ImportRejectedError):
            jobs.create_import(project, owner, upload(b"Dear diary"))
        assert not Import.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestLocks:
    """With commits, since another process would not see what is not committed."""

    def test_its_file_goes_with_its_project(self, waiting):
        assert stored(waiting)
        waiting.project.delete()
        assert not stored(waiting)

    def test_its_file_goes_with_its_user(self, waiting):
        waiting.user.delete()
        assert not Import.objects.exists()
        assert not stored(waiting)

    def test_its_file_stays_when_nothing_was_deleted_after_all(self, waiting):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            waiting.project.delete()
            raise ZeroDivisionError
        assert stored(waiting)

    def test_two_tasks_are_not_at_the_same_import(self, waiting):
        with jobs._lock(waiting.pk) as alone:
            assert alone
            assert jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.state == ImportState.WAITING
        jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.state == ImportState.DONE

    def test_the_sweep_finds_what_a_killed_worker_left(self, waiting, sent):
        Import.objects.update(state=ImportState.RUNNING)
        sent.clear()
        with jobs._lock(waiting.pk):
            tasks.sweep_imports()
        assert sent == []
        tasks.sweep_imports()
        assert sent == [str(waiting.pk)]
        jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert (waiting.state, waiting.imported) == ("done", 13)

    def test_the_sweep_continues_what_a_restart_of_the_database_interrupted(
        self, project, owner, sent, monkeypatch
    ):
        content = "".join(lines("One", "Two", session=str(n)) for n in range(600)).encode()
        import_job = jobs.create_import(project, owner, upload(content, "talk.jsonl"))
        write = ImportWriter.write

        def write_until_restart(*args):
            if Message.objects.exists():
                with closing(connection.copy()) as other, other.cursor() as cursor:
                    cursor.execute(END_OTHER_CONNECTIONS)
            return write(*args)

        with monkeypatch.context() as patch:
            patch.setattr(ImportWriter, "write", write_until_restart)
            jobs.run_import(import_job.pk)
        # All connections of the pool may have been ended, also that of later tests.
        connection.close()
        connection.close_pool()
        assert eventually(lambda: connections_in_use() <= 1, 10) is not None
        sent.clear()
        tasks.sweep_imports()
        assert sent == [str(import_job.pk)]
        jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert (import_job.state, import_job.imported, import_job.errors) == ("done", 1200, [])
        assert Message.objects.count() == 1200

    def test_an_import_for_which_the_disk_has_no_room_fails(self, waiting, monkeypatch):
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        monkeypatch.setattr(ImportWriter, "write", raiser(error))
        jobs.run_import(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.state == "failed"
        assert waiting.errors == [
            "The disk of the server is full. An administrator has to free space."
        ]

    def test_the_sweep_finds_what_waits_too_long(self, waiting, sent):
        sent.clear()
        tasks.sweep_imports()
        assert sent == []
        Import.objects.update(created_at=timezone.now() - timedelta(minutes=3))
        tasks.sweep_imports()
        assert sent == [str(waiting.pk)]

    def test_the_sweep_clears_away_the_files_of_finished_imports(self, waiting):
        Import.objects.update(state=ImportState.DONE)
        tasks.sweep_imports()
        assert not stored(waiting)
        assert Import.objects.get().file.name == ""

    def test_a_broker_that_is_away_loses_nothing(self, project, owner, monkeypatch):
        def away(*_args):
            raise OperationalError

        monkeypatch.setattr("chat.importers.jobs.current_app.send_task", away)
        assert jobs.create_import(project, owner, upload()).state == ImportState.WAITING


@pytest.mark.django_db
class TestPage:
    def test_a_file_is_uploaded_and_its_import_shown(self, client, project, editor):
        client.force_login(editor)
        assert "No imports yet." in client.get(PAGE).content.decode()
        answer = client.post(PAGE, {"file": upload(), "format": "auto"}, follow=True)
        page = answer.content.decode()
        assert "conversations.json" in page
        assert "data-running" in page
        jobs.run_import(Import.objects.get().pk)
        part = client.get(f"{PAGE}?part").content.decode()
        assert "1 chat: 13 messages imported, 0 skipped, 0 rejected" in part
        assert "data-running" not in part
        assert "<html" not in part

    def test_a_bad_file_is_refused_beside_the_field(self, client, project, owner):
        client.force_login(owner)
        answer = client.post(PAGE, {"file": upload(b"Dear diary"), "format": "auto"})
        assert answer.status_code == 400
        assert "This file is no export of ChatGPT" in answer.content.decode()

    def test_a_user_has_three_unfinished_imports(self, client, project, owner, editor, settings):
        for _ in range(3):
            jobs.create_import(project, owner, upload())
        client.force_login(owner)
        answer = client.post(PAGE, {"file": upload(), "format": "auto"})
        assert answer.status_code == 400
        assert "You already have 3 imports that are not finished" in answer.content.decode()
        assert Import.objects.count() == 3
        assert len(list(Path(settings.MEDIA_ROOT).glob(f"imports/{project.pk}/*"))) == 3
        assert jobs.create_import(project, editor, upload())
        jobs.run_import(Import.objects.filter(user=owner)[0].pk)
        assert jobs.create_import(project, owner, upload())

    def test_viewers_and_strangers_get_404_and_no_link(self, client, project, viewer, stranger):
        client.force_login(viewer)
        assert client.get(PAGE).status_code == 404
        assert client.post(PAGE, {"file": upload()}).status_code == 404
        assert PAGE not in client.get("/projects/billing/").content.decode()
        client.force_login(stranger)
        assert client.get(PAGE).status_code == 404

    def test_an_editor_sees_the_link(self, client, project, editor):
        client.force_login(editor)
        assert PAGE in client.get("/projects/billing/settings/").content.decode()

    def test_reasons_are_shown_as_text(self, client, project, owner):
        content = io.BytesIO(lines("One").encode() + b"nonsense\n").read()
        jobs.run_import(jobs.create_import(project, owner, upload(content, "<b>.jsonl")).pk)
        client.force_login(owner)
        page = client.get(PAGE).content.decode()
        assert "Line 2: It is not JSON." in page
        assert "&lt;b&gt;.jsonl" in page

    def test_many_imports_take_few_queries(
        self, client, project, owner, django_assert_max_num_queries
    ):
        for _ in range(30):
            jobs.create_import(project, owner, upload())
            Import.objects.update(state=ImportState.DONE)
        client.force_login(owner)
        with django_assert_max_num_queries(6):
            client.get(PAGE)
