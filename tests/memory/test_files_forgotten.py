"""Forgetting a file leaves nothing of it, and does not reach what it may not."""

import io
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from chat.conversations.messages import ask, draft, post_messages
from chat.conversations.sessions import create_session
from chat.importers import FileResult, import_file
from chat.models import Attachment, Message, Visibility
from memory.files import processing
from memory.forgetting.replay import replay
from memory.forgetting.service import ForgetScope, forget, preview
from memory.forgetting.tombstones import TombstoneRecord
from memory.layers import cycle
from memory.models import (
    Chunk,
    File,
    FilePassage,
    FileRevision,
    SourceType,
    Tombstone,
    TombstoneKind,
    Vector,
)
from memory.portability import ExportScope, export
from projects.models import Membership
from projects.services import create_project
from tests.memory.file_helpers import MANUAL, add_read, add_text, read

pytestmark = pytest.mark.django_db

OTHER = "# Terms\n\nInvoices are due within thirty days of the delivery, without deductions.\n"


def member(project, user) -> Membership:
    return Membership.objects.select_related("project", "user").get(project=project, user=user)


def test_nothing_of_a_forgotten_file_is_left(project, owner, django_capture_on_commit_callbacks):
    document = add_read(project, owner)
    add_read(project, owner, text=MANUAL.replace("nine", "six"))
    other = add_read(project, owner, "terms.md", OTHER)
    quoting = add_read(project, owner, "copy.md", f"From the manual:\n\n{MANUAL}")
    paths = list(document.revisions.values_list("file", flat=True))
    with django_capture_on_commit_callbacks(execute=True):
        receipt = forget(project, ForgetScope(file=document.pk), owner)
    assert receipt.removed["files"] == 1
    assert receipt.removed["chunks"] > 1
    assert ("file", quoting.pk) in receipt.found
    assert ("file", other.pk) not in receipt.found
    assert set(File.objects.all()) == {other, quoting}
    kept = set(FileRevision.objects.values_list("pk", flat=True))
    assert set(FilePassage.objects.values_list("revision", flat=True)) == kept
    assert set(Chunk.objects.values_list("source", flat=True)) == kept
    assert Vector.objects.count() == Chunk.objects.count()
    assert not any(default_storage.exists(path) for path in paths)
    assert Tombstone.objects.get().kind == TombstoneKind.FILE
    assert ForgetScope(file=document.pk).missing_object(project) == ""


def test_a_preview_keeps_the_file(project, owner):
    document = add_read(project, owner)
    assert preview(project, ForgetScope(file=document.pk), owner).removed["files"] == 1
    assert File.objects.exists() and Chunk.objects.exists()


def test_replies_that_used_a_passage_are_listed_also_of_an_earlier_version(project, owner):
    document = add_read(project, owner)
    [*_, passage] = FilePassage.objects.all()
    session = create_session(project, owner)
    _, reply = ask(session, "Which torque do the bolts need?", owner)
    item = {"id": str(passage.pk), "kind": "file", "revision": 1, "tokens": 30}
    receipt = {"sections": [{"name": "files", "tokens": 30, "items": [item]}]}
    Message.objects.filter(pk=reply.pk).update(receipt=receipt, status="complete", text="24 Nm.")
    add_read(project, owner, text=MANUAL.replace("nine", "six"))
    assert list(preview(project, ForgetScope(file=document.pk), owner).saw_it) == [reply.pk]
    forget(project, ForgetScope(file=document.pk, replies=True), owner)
    assert Message.objects.get(pk=reply.pk).text == ""


def test_a_chat_takes_its_files_along(project, owner):
    session = create_session(project, owner)
    add_read(project, owner, session=session)
    shared = add_read(project, owner, "terms.md", OTHER)
    receipt = forget(project, ForgetScope(session=session.pk), owner)
    assert receipt.removed["files"] == 1
    assert File.objects.get() == shared
    assert Chunk.objects.filter(source_type=SourceType.FILE).exists()


def test_a_user_takes_the_files_along_that_they_added(project, owner, editor):
    add_read(project, editor)
    kept = add_read(project, owner, "terms.md", OTHER)
    forget(project, ForgetScope(user=editor.pk), owner)
    assert File.objects.get() == kept


def test_a_user_takes_the_versions_along_that_they_added_to_files_of_others(project, owner, editor):
    document = add_read(project, owner)
    later = timezone.now() + timedelta(hours=1)
    cycle.run(later, project)
    add_read(project, editor, text=OTHER)
    cycle.run(later, project)
    entry = project.entries.get(file__document=document)
    assert "Invoices" in entry.summary
    [passage] = FilePassage.objects.filter(revision__added_by=editor)
    receipt = forget(project, ForgetScope(user=editor.pk), owner)
    assert receipt.removed["files"] == 1 and receipt.removed["chunks"] > 0
    assert not FilePassage.objects.filter(pk=passage.pk).exists()
    assert [revision.added_by for revision in document.revisions.all()] == [owner]
    entry.refresh_from_db()
    assert entry.withheld and not entry.summary
    processing.catch_up(60)
    cycle.run(later, project)
    entry.refresh_from_db()
    assert not entry.withheld and "Invoices" not in entry.summary
    kept = document.revisions.get()
    assert set(Chunk.objects.filter(source_type=SourceType.FILE).values_list("source")) == {
        (kept.pk,)
    }


def test_unsent_images_in_other_projects_stay(project, owner, editor):
    others = create_project(owner, name="Other")
    for place in (project, others):
        session = create_session(place, owner)
        Attachment.objects.create(
            project=place, session=session, uploaded_by=editor, size=1, width=1, height=1
        )
    receipt = forget(project, ForgetScope(user=editor.pk), owner)
    assert receipt.removed["attachments"] == 1
    assert Attachment.objects.get().project == others


def test_a_chat_with_only_the_words_of_a_user_keeps_the_files_of_others(project, owner, editor):
    session = create_session(project, owner)
    post_messages(session, [draft("Where is the manual?", author=editor)])
    kept = add_text(project, owner, session=session)
    add_text(project, editor, "terms.md", OTHER, session)
    forget(project, ForgetScope(user=editor.pk), editor)
    assert File.objects.get() == kept
    assert kept.session == session
    forget(project, ForgetScope(before=timezone.now() + timedelta(hours=1)), owner)
    assert not File.objects.exists()


def test_an_editor_does_not_forget_a_version_that_somebody_else_added(project, owner, editor):
    document = add_text(project, editor)
    member = Membership.objects.get(project=project, user=editor)
    for scope in (ForgetScope(file=document.pk), ForgetScope(user=editor.pk)):
        assert scope.is_permitted_to(member)
    add_text(project, owner, text=OTHER)
    for scope in (ForgetScope(file=document.pk), ForgetScope(user=editor.pk)):
        assert not scope.is_permitted_to(member)


def test_editors_forget_their_own_files_and_owners_any(project, owner, editor, viewer):
    own, other = add_text(project, editor), add_text(project, owner, "terms.md", OTHER)
    for user, allowed in ((owner, (True, True)), (editor, (True, False)), (viewer, (False, False))):
        scopes = (ForgetScope(file=own.pk), ForgetScope(file=other.pk))
        assert tuple(scope.is_permitted_to(member(project, user)) for scope in scopes) == allowed


def test_a_restored_backup_forgets_the_file_again(project, owner):
    document = add_read(project, owner)
    record = TombstoneRecord("2026-03-12T10:00:00+00:00", str(project.pk), "file", str(document.pk))
    assert replay([record])["file"] == 1
    assert not File.objects.exists()


def test_deleting_a_project_removes_its_stored_files(
    project, owner, django_capture_on_commit_callbacks
):
    path = add_read(project, owner).revisions.get().file.name
    with django_capture_on_commit_callbacks(execute=True):
        project.delete()
    assert not default_storage.exists(path)
    assert not Chunk.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_export_brings_files_along_with_their_versions_and_passages(project, owner, editor):
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    document = add_read(project, owner)
    add_read(project, owner, text=MANUAL.replace("nine", "six"))
    add_read(project, owner, "secret.md", OTHER, session=private)
    file = io.BytesIO()
    counts = export(ExportScope(project), file)
    assert (counts["files"], counts["file_revisions"]) == (2, 3)
    assert export(ExportScope(project, viewer=editor), io.BytesIO())["files"] == 1
    new = create_project(owner, name="Copy")
    import_file(new, owner, "export.zip", file, "auto", result=FileResult())
    copy = File.objects.get(project=new, name=document.name)
    # Only the latest version is indexed, and the file is summarised from it.
    states = copy.revisions.order_by("number").values_list("number", "state")
    assert [*states] == [(1, "ready"), (2, "indexing")]
    assert read(copy).progress == 100
    texts = Chunk.objects.filter(project=new).values_list("text", flat=True)
    assert any("six months" in text for text in texts)
    with copy.revisions.get(number=1).file.open("rb") as stored:
        assert stored.read().decode() == MANUAL
