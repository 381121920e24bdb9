"""The page of files, and the viewer."""

import re
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from chat.conversations.sessions import create_session
from chat.models import Session, Visibility
from memory.files import access, reading, responses
from memory.files.adding import add_file
from memory.files.reading import DEFAULT
from memory.files.reading.errors import unreadable
from memory.models import EntryState, File, FileRevision, FileState
from tests.hostile import wrapped_files
from tests.memory.file_helpers import MANUAL, add_read, add_text, read
from tests.memory.files import samples

pytestmark = pytest.mark.django_db


@pytest.fixture
def browse(project):
    def visit(user, name="files", *args, method="get", **data):
        client = Client()
        client.force_login(user)
        return getattr(client, method)(reverse(name, args=[project.slug, *args]), data, follow=True)

    return visit


def upload(name="manual.md"):
    return SimpleUploadedFile(name, MANUAL.encode())


def test_files_are_added_listed_searched_and_shown(browse, project, editor):
    response = browse(editor, method="post", files=[upload(), upload("b.md")])
    assert b"2 files added." in response.content
    document = File.objects.get(name="manual.md")
    read(document)
    listed = browse(editor).content.decode()
    assert "manual.md" in listed and "edgar" in listed and "data-poll" in listed
    assert "24 newton metres" in browse(editor, q="torque of the bolts").content.decode()
    shown = browse(editor, "file", document.pk, at="1").content.decode()
    assert '<mark id="p1">' in shown and "24 newton metres" in shown
    found = browse(editor, "file", document.pk, q="torque").content.decode()
    assert "24 newton metres" in found


def test_text_of_one_section_is_shown_in_parts(browse, project, owner, monkeypatch):
    monkeypatch.setattr(access, "MAX_PASSAGES", 3)
    lines = (f"Line {number} has a few words. {'word ' * 100}\n" for number in range(8))
    document = add_read(project, owner, "log.txt", "".join(lines))
    pages = []
    for link in ("", "passage=4", "passage=7", "passage=5", "at=8"):
        page = browse(owner, "file", document.pk, **dict(re.findall(r"(\w+)=(\d+)", link)))
        pages.append(re.findall(r'id="p(\d+)"', page.content.decode()))
    assert pages == [["1", "2", "3"], ["4", "5", "6"], ["7", "8"], ["4", "5", "6"], ["7", "8"]]


def test_few_pages_are_rendered_at_the_same_time(browse, project, owner, monkeypatch):
    document = add_file(project, owner, "a.pdf", BytesIO(samples.pdf("text")))
    read(document)
    address = "file-page-image", document.pk, 1
    monkeypatch.setattr(responses, "MAX_WAIT_S", 0.01)
    # The test is one transaction.
    monkeypatch.setattr(connections, "close_all", lambda: None)
    nested = []

    def page_image(path, page, width):
        nested.append(browse(owner, *address))
        return b"\x89PNG"

    monkeypatch.setattr(reading, "page_image", page_image)
    image = browse(owner, *address)
    assert len(nested) == responses.RENDERERS
    assert nested[0].status_code == 503 and nested[0]["Retry-After"] == "5"
    assert image.status_code == 200 and image["Cache-Control"] == "private, no-cache"
    # A browser that has the image only asks whether the reader may still see it.
    client = Client(headers={"If-None-Match": image["ETag"]})
    client.force_login(owner)
    assert client.get(image.wsgi_request.path).status_code == 304
    assert len(nested) == responses.RENDERERS


def test_files_are_added_beside_one_that_is_refused(browse, project, owner):
    locked = SimpleUploadedFile("a.epub", wrapped_files.locked(samples.epub(), "mimetype"))
    page = browse(owner, method="post", files=[locked, upload()]).content.decode()
    assert "a.epub: The file is protected by a password." in page
    assert File.objects.get().name == "manual.md"


def test_a_chat_adds_files_for_itself_or_for_the_project(browse, project, owner):
    chat = create_session(project, owner)
    fields = {"session": chat.pk, "for": "chat"}
    response = browse(owner, method="post", files=[upload()], **fields)
    assert response.redirect_chain[-1][0].endswith(f"/chats/{chat.pk}/")
    assert File.objects.get().session == chat
    assert b"chat-files" in response.content
    fields["for"] = "project"
    browse(owner, method="post", files=[upload("b.md")], **fields)
    assert File.objects.get(name="b.md").session is None


def test_a_chat_begins_with_files_and_the_options_of_its_composer(browse, project, editor):
    fields = {"session": "new", "for": "chat", "visibility": "private", "unremembered": "on"}
    response = browse(editor, method="post", files=[upload()], **fields)
    chat = File.objects.get().session
    assert (chat.creator, chat.visibility, chat.remembered) == (editor, Visibility.PRIVATE, False)
    assert response.redirect_chain[-1][0].endswith(f"/chats/{chat.pk}/")
    fields["for"] = "project"
    response = browse(editor, method="post", files=[upload("b.md")], **fields)
    assert response.redirect_chain[-1][0] == reverse("project", args=[project.slug])
    assert File.objects.get(name="b.md").session is None


def test_no_chat_begins_without_a_file_that_can_be_added(browse, project, editor, viewer):
    fields = {"session": "new", "for": "chat"}
    empty = SimpleUploadedFile("empty.txt", b"")
    assert (
        b"empty.txt: This file is empty."
        in browse(editor, method="post", files=[empty], **fields).content
    )
    browse(editor, method="post", **fields)
    invalid = browse(editor, method="post", files=[upload()], visibility="x", **fields)
    stranger = browse(viewer, method="post", files=[upload()], **fields)
    assert (invalid.status_code, stranger.status_code) == (400, 404)
    assert not Session.objects.exists() and not File.objects.exists()


def test_a_file_of_a_private_chat_is_on_no_page_of_others(browse, project, owner, editor):
    private = create_session(project, owner, visibility=Visibility.PRIVATE)
    document = add_read(project, owner, session=private)
    assert b"manual.md" in browse(owner).content
    assert b"manual.md" not in browse(editor).content
    assert browse(editor, "file", document.pk).status_code == 404
    assert browse(editor, "file-download", document.pk).status_code == 404
    assert b"newton" not in browse(editor, q="torque of the bolts").content


@pytest.mark.parametrize(
    ("reader", "reason", "warning"),
    [
        ("en", "takes too long to read", "Pages without text: 7."),
        ("de", "Das Lesen der Datei dauert zu lange.", "Seiten ohne Text: 7."),
    ],
)
def test_a_reason_is_shown_in_the_language_of_the_reader(
    project, owner, client, monkeypatch, reader, reason, warning
):
    document = add_text(project, owner)

    def time_out(*args):
        raise unreadable("timed_out", DEFAULT)

    with translation.override("de" if reader == "en" else "en"):
        monkeypatch.setattr(reading, "read_document", time_out)
        read(document)
    FileRevision.objects.update(warnings=["empty_pages:7"])
    client.force_login(owner)
    language = {"HTTP_ACCEPT_LANGUAGE": reader}
    assert reason in client.get(f"/projects/{project.slug}/files/", **language).content.decode()
    page = client.get(reverse("file", args=[project.slug, document.pk]), **language)
    assert reason in page.content.decode() and warning in page.content.decode()


def test_a_failure_shows_the_reason_and_is_retried(browse, project, owner, editor):
    document = add_text(project, owner)
    FileRevision.objects.update(state=FileState.FAILED, reason="damaged")
    assert b"The file is damaged or not complete." in browse(owner).content
    retry = reverse("file-retry", args=[project.slug, document.pk])
    assert retry in browse(owner, "file", document.pk).content.decode()
    assert retry not in browse(editor, "file", document.pk).content.decode()
    assert browse(editor, "file-retry", document.pk, method="post").status_code == 403
    browse(owner, "file-retry", document.pk, method="post")
    assert FileRevision.objects.get().state == FileState.WAITING


def test_an_earlier_version_is_not_retried(browse, project, owner):
    document = add_text(project, owner)
    add_text(project, owner, text="The harbour closes at ten.")
    FileRevision.objects.update(state=FileState.FAILED, reason="damaged")
    retry = reverse("file-retry", args=[project.slug, document.pk])
    assert retry in browse(owner, "file", document.pk).content.decode()
    assert retry not in browse(owner, "file", document.pk, version=1).content.decode()


def test_forgetting_asks_first_and_leads_to_a_receipt(browse, project, owner):
    document = add_read(project, owner)
    asked = browse(owner, "memory-forget", file=document.pk).content.decode()
    assert "manual.md" in asked and "file with all versions" in asked
    browse(owner, "memory-forget", method="post", file=document.pk, reason="wrong")
    assert not File.objects.exists()


def test_the_list_of_a_past_day_has_the_versions_of_that_day(api, browse, project, owner):
    document = add_read(project, owner)
    add_read(project, owner, text=MANUAL.replace("nine", "six"))
    add_text(project, owner, "new.md")
    then = timezone.now() - timedelta(days=3)
    File.objects.filter(pk=document.pk).update(created_at=then)
    FileRevision.objects.filter(document=document, number=1).update(created_at=then)
    EntryState.objects.update(since=then)
    day = (then + timedelta(days=1)).date().isoformat()
    page = browse(owner, at=day).content.decode()
    assert f"/files/{document.pk}/?version=1" in page and "version 2" not in page
    assert "new.md" not in page and "Add files" not in page
    assert "version 2" in browse(owner).content.decode()
    assert f"/files/?at={day}" in browse(owner, "memory", at=day).content.decode()
    url = f"/api/v1/projects/{project.slug}/files/"
    [row] = api(owner).get(url, {"as_of": day}).json()["results"]
    assert [version["number"] for version in row["versions"]] == [1]
    assert len(api(owner).get(url).json()["results"]) == 2
    assert api(owner).get(url, {"as_of": "soon"}).status_code == 400
    assert browse(owner, at="9999-12-31").status_code == 200
    document.revisions.get(number=1).delete()
    assert str(document.pk) not in browse(owner, at=day).content.decode()


def test_the_list_takes_the_same_queries_for_many(browse, project, owner):
    counts = []
    for number in range(3):
        add_text(project, owner, f"{number}.md", f"{MANUAL} {number}")
        with CaptureQueriesContext(connection) as queries:
            browse(owner)
        counts.append(len(queries))
    assert counts[1] == counts[2]


def test_a_search_does_not_read_the_list_of_files(browse, project, owner):
    add_read(project, owner)
    with CaptureQueriesContext(connection) as queries:
        assert b"24 newton metres" in browse(owner, q="torque of the bolts").content
    statements = [str(row["sql"]) for row in queries]
    assert not [sql for sql in statements if "COUNT(" in sql and 'FROM "memory_file" ' in sql]
    assert not [sql for sql in statements if 'ORDER BY "memory_file"."changed_at"' in sql]


def test_forget_is_offered_to_those_who_may_forget_all_versions(browse, project, owner, editor):
    document = add_read(project, editor)
    assert b"Forget\xe2\x80\xa6" in browse(editor).content
    assert b"Forget\xe2\x80\xa6" in browse(editor, "file", document.pk).content
    add_text(project, owner, text="A version of the owner.")
    for user, count in ((editor, 0), (owner, 1)):
        assert browse(user).content.count(b"Forget\xe2\x80\xa6") == count
        assert browse(user, "file", document.pk).content.count(b"Forget\xe2\x80\xa6") == count
