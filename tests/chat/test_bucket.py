"""Images and imports in a bucket: private, served by views alone, gone when they are forgotten."""

import io
import json

import pytest
from asgiref.sync import async_to_sync
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import StreamingHttpResponse
from django.utils import timezone

from chat import attachments, tasks
from chat.conversations.messages import post_message
from chat.importers import jobs
from chat.models import Attachment, FileRemoval, Import, ImportState, Session, Visibility
from memory.forgetting.service import ForgetScope, forget
from tests.chat.pictures import opened, picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def image(bucket, session, owner, api) -> str:
    """The id of an image that was posted."""
    upload = {"file": SimpleUploadedFile("plan.png", picture())}
    url = f"/api/v1/sessions/{session.pk}/attachments/"
    pk = api(owner).post(url, upload, format="multipart").json()["id"]
    attachments.claim_uploads(post_message(session, "Look.", author=owner), [pk], owner)
    return pk


async def _read(answer: StreamingHttpResponse) -> bytes:
    return b"".join([part async for part in answer])


def test_an_image_lies_in_the_bucket_and_is_served_by_the_view(image, bucket, api, owner, stranger):
    row = Attachment.objects.get(pk=image)
    assert list(bucket.objects) == [f"/strata/{row.file.name}"]
    answer = api(owner).get(f"/api/v1/attachments/{image}/")
    assert answer.status_code == 200
    assert opened(async_to_sync(_read)(answer)).size == (40, 30)
    assert "strata" not in str(answer.headers).lower()
    assert api(stranger).get(f"/api/v1/attachments/{image}/").status_code == 404


def test_nothing_in_the_bucket_is_public(image, bucket):
    assert not [header for header in bucket.headers if "x-amz-acl" in header]


def test_a_forgotten_image_is_gone_from_the_bucket(image, bucket, project, owner, session):
    forget(project, ForgetScope(session=session.pk), owner)
    assert bucket.objects == {}


@pytest.mark.parametrize("status", [503, 403])
def test_a_bucket_that_does_not_let_it_go_is_asked_again(
    image, bucket, project, owner, session, status
):
    bucket.refuses = status
    assert forget(project, ForgetScope(session=session.pk), owner).awaiting_files == 1
    assert len(bucket.objects) == 1
    bucket.refuses = 0
    FileRemoval.objects.update(next_try_at=timezone.now())
    tasks.sweep_removals()
    assert bucket.objects == {}
    assert not FileRemoval.objects.exists()


def test_an_image_missing_in_the_bucket_gets_404(image, bucket, api, owner):
    bucket.objects.clear()
    assert api(owner).get(f"/api/v1/attachments/{image}/").status_code == 404


def test_an_import_is_read_from_the_bucket_and_then_removed(bucket, project, owner, monkeypatch):
    monkeypatch.setattr(jobs, "enqueue", lambda pk: None)
    line = {"session": "a", "role": "user", "content": "Said.", "created_at": "2026-03-01T09:00Z"}
    file = SimpleUploadedFile("talk.jsonl", json.dumps(line).encode())
    upload = jobs.create_import(project, owner, file)
    assert len(bucket.objects) == 1
    assert jobs.run_import(upload.pk)
    assert Import.objects.get(pk=upload.pk).state == ImportState.DONE
    assert Session.objects.filter(project=project).count() == 1
    assert bucket.objects == {}


def test_a_file_comes_back_whole(bucket):
    data = bytes(range(256)) * 1_000
    name = default_storage.save("large", io.BytesIO(data))  # type: ignore[arg-type]
    with default_storage.open(name) as file:
        assert file.read() == data


@pytest.mark.parametrize(
    "outage", [(403, "AccessDenied"), (404, "NoSuchBucket"), (500, "InternalError")]
)
def test_an_upload_without_the_bucket_is_503_and_stores_nothing(
    bucket, outage, api, owner, session
):
    bucket.outage = outage
    client = api(owner)
    client.raise_request_exception = False
    upload = {"file": SimpleUploadedFile("plan.png", picture())}
    url = f"/api/v1/sessions/{session.pk}/attachments/"
    answer = client.post(url, upload, format="multipart")
    message = "The file storage is not available right now. Try again later."
    assert (answer.status_code, answer.json()) == (503, {"detail": message})
    assert answer["Retry-After"] == "30"
    assert not Attachment.objects.exists()


def test_an_image_is_503_while_the_bucket_refuses_its_key(image, bucket, api, owner):
    bucket.outage = 403, "InvalidAccessKeyId"
    client = api(owner)
    client.raise_request_exception = False
    assert client.get(f"/api/v1/attachments/{image}/").status_code == 503
    bucket.outage = None
    assert client.get(f"/api/v1/attachments/{image}/").status_code == 200
