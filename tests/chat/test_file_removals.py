"""A file whose row is gone goes too: what keeps it may be away for a while, and is asked again."""

import errno
import io
import os
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.db.models import F
from django.db.models.fields.files import FieldFile
from django.urls import reverse
from django_celery_beat.models import PeriodicTask

from chat import attachments, tasks
from chat.attachments import file_removal
from chat.conversations.messages import post_message
from chat.importers.jobs import create_import
from chat.models import Attachment, FileRemoval, Session, Visibility
from config.observability.metrics.collectors import pending, retrying
from memory.files.adding import add_file
from memory.forgetting.service import ForgetScope, forget, preview
from memory.models import Activity, ActivityVerb
from projects.services import delete_project
from tests.chat.pictures import picture

pytestmark = pytest.mark.django_db(transaction=True)


class Away:
    """The storage deletes nothing while it `fails`, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.request_count = 0
        self.fails: type[BaseException] | None = ConnectionError


@pytest.fixture
def away(monkeypatch) -> Away:
    unavailable_storage = Away()
    delete = FileSystemStorage.delete

    def try_to(storage: FileSystemStorage, path: str) -> None:
        unavailable_storage.request_count += 1
        if unavailable_storage.fails:
            raise unavailable_storage.fails
        delete(storage, path)

    monkeypatch.setattr(FileSystemStorage, "delete", try_to)
    return unavailable_storage


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def send(session, owner, api):
    """Posts a message with an image; returns the image's row."""

    def make() -> Attachment:
        upload = {"file": SimpleUploadedFile("plan.png", picture())}
        url = f"/api/v1/sessions/{session.pk}/attachments/"
        pk = api(owner).post(url, upload, format="multipart").json()["id"]
        attachments.claim_uploads(post_message(session, "Look.", author=owner), [pk], owner)
        return Attachment.objects.get(pk=pk)

    return make


def long_ago() -> None:
    """As if the next try of each were due."""
    FileRemoval.objects.update(next_try_at=F("next_try_at") - timedelta(hours=2))


def test_it_is_gone_at_once_where_nothing_is_in_the_way(send, project, session, owner):
    image = send()
    receipt = forget(project, ForgetScope(session=session.pk), owner)
    assert not default_storage.exists(image.file.name)
    assert receipt.awaiting_files == 0
    assert not FileRemoval.objects.exists()


class KilledError(BaseException):
    """The process is killed, so that it cleans up nothing."""


@pytest.fixture
def uploads(send, project, owner) -> dict[str, Callable[[], object]]:
    """Stores a file of each kind."""
    jsonl = b'{"role": "user", "content": "Hello", "created_at": "2026-03-01T12:00:00Z"}\n'
    return {
        "image": send,
        "file": lambda: add_file(project, owner, "plan.txt", io.BytesIO(b"The plan.")),
        "import": lambda: create_import(project, owner, SimpleUploadedFile("a.jsonl", jsonl)),
    }


@pytest.mark.parametrize("kind", ["image", "file", "import"])
def test_the_file_of_an_upload_whose_process_is_killed_is_removed_after_a_day(
    uploads, kind, monkeypatch, away
):
    def write(row, name, content, **options) -> None:
        saved.append(default_storage.save(row.field.generate_filename(row.instance, name), content))
        raise KilledError

    saved: list[str] = []
    monkeypatch.setattr(FieldFile, "save", write)
    away.fails = KilledError
    with pytest.raises(KilledError):
        uploads[kind]()
    away.fails = None
    tasks.sweep_removals()
    assert default_storage.exists(saved[0])
    counts = {
        (metric.name, str(sample.labels)): sample.value
        for metric in pending()
        for sample in metric.samples
    }
    assert counts["strata_pending_items", "{'kind': 'files'}"] == 0
    FileRemoval.objects.update(next_try_at=F("next_try_at") - file_removal.SAVE_WITHIN)
    tasks.sweep_removals()
    assert not default_storage.exists(saved[0])


@pytest.mark.parametrize("kind", ["image", "file", "import"])
def test_no_part_of_an_upload_is_left_on_a_full_disk(uploads, kind, monkeypatch):
    def write(row, name, content, **options) -> None:
        path = row.field.generate_filename(row.instance, name)
        saved.append(default_storage.save(path, ContentFile(b"The beginning")))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    saved: list[str] = []
    monkeypatch.setattr(FieldFile, "save", write)
    with pytest.raises(OSError, match="No space left"):
        uploads[kind]()
    assert not default_storage.exists(saved[0])


@pytest.mark.parametrize("kind", ["image", "file", "import"])
def test_a_stored_upload_is_not_removed(uploads, kind):
    uploads[kind]()
    assert not FileRemoval.objects.exists()


def test_a_failed_removal_is_retried_until_it_succeeds(send, project, session, owner, away):
    image = send()
    receipt = forget(project, ForgetScope(session=session.pk), owner)
    assert (receipt.awaiting_files, receipt.removed["attachments"]) == (1, 1)
    [left] = FileRemoval.objects.all()
    assert (left.path, left.act, left.attempts) == (image.file.name, receipt.id, 1)
    assert left.last_error == "ConnectionError"
    tasks.sweep_removals()
    assert away.request_count == 1, "not before a minute is over"
    for _ in range(3):
        long_ago()
        tasks.sweep_removals()
    assert FileRemoval.objects.get().attempts == 4
    assert default_storage.exists(image.file.name)
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert not default_storage.exists(image.file.name)
    assert not FileRemoval.objects.exists()


def test_a_removal_is_still_tried_after_days_of_failures(send, project, session, owner, away):
    image = send()
    forget(project, ForgetScope(session=session.pk), owner)
    FileRemoval.objects.update(attempts=100)
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert not default_storage.exists(image.file.name)


def test_a_large_forget_request_waits_for_one_failure_only(send, project, session, owner, away):
    for _ in range(3):
        send()
    assert forget(project, ForgetScope(session=session.pk), owner).awaiting_files == 3
    assert away.request_count == 1
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert not FileRemoval.objects.exists()


def test_a_sweep_ends_with_the_first_that_fails(send, project, session, owner, away):
    for _ in range(3):
        send()
    forget(project, ForgetScope(session=session.pk), owner)
    long_ago()
    tasks.sweep_removals()
    assert away.request_count == 2


def test_a_process_that_dies_over_it_leaves_it_to_the_sweep(send, project, session, owner, away):
    image = send()

    away.fails = SystemExit
    with pytest.raises(SystemExit):
        forget(project, ForgetScope(session=session.pk), owner)
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert not default_storage.exists(image.file.name)


def test_a_preview_removes_nothing(send, project, session, owner):
    image = send()
    assert preview(project, ForgetScope(session=session.pk), owner).awaiting_files == 0
    assert default_storage.exists(image.file.name)
    assert not FileRemoval.objects.exists()


def test_a_file_that_a_row_still_names_stays(send, project):
    image = send()
    with transaction.atomic():
        file_removal.schedule_removal(project.pk, str(image.file.name))
    assert default_storage.exists(image.file.name)
    assert not FileRemoval.objects.exists()


def test_a_deleted_project_leaves_no_file(send, project, away):
    image = send()
    delete_project(project)
    assert FileRemoval.objects.count() == 1
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert not default_storage.exists(image.file.name)


def test_the_receipt_tells_of_it_as_long_as_it_is_so(
    send, project, session, owner, api, client, admin_client, away
):
    send()
    wish = {"session": str(session.pk)}
    payload = (
        api(owner).post(f"/api/v1/projects/{project.slug}/forget/", wish, format="json").json()
    )
    assert payload["awaiting_files"] == 1
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    client.force_login(owner)
    page = reverse("memory-receipt", args=[project.slug, act.pk])
    admin = reverse("admin:memory_activity_change", args=[act.pk])
    assert "1 file</b> could not be deleted yet" in client.get(page).content.decode()
    assert "1 file</b> could not be deleted yet" in admin_client.get(admin).content.decode()
    away.fails = None
    long_ago()
    tasks.sweep_removals()
    assert "could not be deleted" not in client.get(page).content.decode()
    assert "could not be deleted" not in admin_client.get(admin).content.decode()


def test_the_command_prints_the_files_that_are_left(
    send, project, session, owner, admin_client, away
):
    image = send()
    forget(project, ForgetScope(session=session.pk), owner)
    listed = admin_client.get(reverse("admin:chat_fileremoval_changelist")).content.decode()
    assert str(image.file.name) in listed and "ConnectionError" in listed
    count, age = pending()
    waiting_by_kind = {sample.labels["kind"]: sample.value for sample in count.samples}
    assert waiting_by_kind["files"] == 1
    assert {sample.labels["kind"]: sample.value for sample in age.samples}["files"] >= 0
    [family] = retrying()
    assert {sample.labels["kind"]: sample.value for sample in family.samples}["files"] == 1


def test_a_failure_is_logged(send, project, session, owner, away, caplog):
    send()
    forget(project, ForgetScope(session=session.pk), owner)
    assert "file_removal_failed" in [record.message.split()[0] for record in caplog.records]


def test_the_beat_looks_for_it():
    assert PeriodicTask.objects.filter(task="chat.tasks.sweep_removals", enabled=True).exists()


def test_only_its_own_forget_request_counts_a_removal(send, project, session, owner, away):
    send()
    receipt = forget(project, ForgetScope(session=session.pk), owner)
    assert file_removal.count_pending_removals(project.pk, receipt.id) == 1
    assert file_removal.count_pending_removals(project.pk, uuid4()) == 0
