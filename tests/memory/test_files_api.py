"""Files at the API and by MCP's functions: add, list, read by pages, search, download, forget."""

import io
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.utils import translation

from chat.conversations.sessions import create_session
from chat.models import Visibility
from memory.files import access
from memory.models import File, FileRevision, FileState
from tests.hostile import wrapped_files
from tests.memory.file_helpers import MANUAL, add_read, add_text, read
from tests.memory.files import samples

pytestmark = pytest.mark.django_db
URL = "/api/v1/projects/billing/files/"


def upload(client, name="manual.md", content=MANUAL.encode(), **fields):
    data = {"file": SimpleUploadedFile(name, content), **fields}
    return client.post(URL, data, format="multipart")


def test_a_file_is_added_and_read(api, project, editor):
    client = api(editor)
    response = upload(client)
    assert response.status_code == 201, response.json()
    [added] = response.json()["files"]
    assert (added["name"], added["added_by"], added["session"]) == ("manual.md", "edgar", None)
    assert added["versions"][0]["state"] == "waiting"
    read(File.objects.get())
    body = client.get(f"{URL}{added['id']}/text/").json()
    text = "".join(it["text"] for page in body["pages"] for it in page["passages"])
    assert "24 newton metres" in text
    results = client.get(
        "/api/v1/projects/billing/recall/", {"q": "torque of bolts", "file": added["id"]}
    ).json()["results"]
    assert results[0]["file"] == added["id"]
    assert results[0]["source_type"] == "file"
    assert client.get(URL, {"name": "MANUAL"}).json()["results"][0]["id"] == added["id"]


def test_long_text_of_one_section_is_returned_in_parts(api, project, owner, monkeypatch):
    monkeypatch.setattr(access, "MAX_PASSAGES", 3)
    lines = (f"Line {number} has a few words. {'word ' * 100}\n" for number in range(8))
    document = add_read(project, owner, "log.txt", "".join(lines))
    passages, first = [], 1
    while first:
        answer = api(owner).get(f"{URL}{document.pk}/text/", {"passage": first}).json()
        [page], first = answer["pages"], answer["next"]
        assert len(page["passages"]) <= 3
        passages += [it["number"] for it in page["passages"]]
    assert passages == list(range(1, 9))
    invalid = api(owner).get(f"{URL}{document.pk}/text/", {"passage": "x"})
    assert invalid.status_code == 400


def test_a_locked_book_is_refused_by_name_of_the_reason(api, project, owner):
    response = upload(api(owner), "a.epub", wrapped_files.locked(samples.epub(), "mimetype"))
    assert response.status_code == 400
    assert "protected by a password" in response.json()["file"][0]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_several_files_in_a_request_are_refused(api, project, owner):
    chat_session = create_session(project, owner)
    imports = "/api/v1/projects/billing/imports/"
    for url in (URL, imports, f"/api/v1/sessions/{chat_session.pk}/attachments/"):
        files = [SimpleUploadedFile(name, name.encode()) for name in ("a.txt", "b.txt")]
        response = api(owner).post(url, {"file": files}, format="multipart")
        assert (response.status_code, list(response.json())) == (400, ["file"])
        assert "one file" in response.json()["file"][0]
    assert not File.objects.exists()


def test_files_of_the_same_name_in_an_archive_are_versions(api, project, owner):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("notes.txt", "The first text.")
        packed.writestr("notes.txt", "A second, longer text.")
    assert upload(api(owner), "docs.zip", archive.getvalue()).status_code == 201
    sizes = FileRevision.objects.filter(project=project).order_by("number").values_list("size")
    assert [*sizes] == [(15,), (22,)]


def test_an_archive_is_added_file_by_file(api, project, owner):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("docs/a.md", MANUAL)
        packed.writestr("docs/empty.md", "")
    body = upload(api(owner), "docs.zip", archive.getvalue()).json()
    assert [it["name"] for it in body["files"]] == ["docs/a.md"]
    assert [it["name"] for it in body["refused"]] == ["docs/empty.md"]


def test_an_archive_that_begins_with_a_pdf_is_added_file_by_file(api, project, owner):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("report.pdf", samples.pdf("The report"))
        packed.writestr("notes.txt", MANUAL)
    body = upload(api(owner), "papers.zip", archive.getvalue()).json()
    assert [it["name"] for it in body["files"]] == ["report.pdf", "notes.txt"]


def test_a_file_that_is_refused_says_why(api, project, owner):
    response = upload(api(owner), content=b"")
    assert response.status_code == 400
    assert not File.objects.exists()


def test_the_reason_of_a_failure_has_a_code_and_an_english_sentence(api, project, owner):
    document = add_text(project, owner, "scan.pdf", "%PDF-1.7 broken")
    with translation.override("de"):
        read(document)
    client = api(owner)
    answer = client.get(f"{URL}{document.pk}/", HTTP_ACCEPT_LANGUAGE="de")
    [version] = answer.json()["versions"]
    assert version["reason_code"] == "damaged"
    assert version["reason"] == "The file is damaged or not complete."
    FileRevision.objects.update(reason="too_many_pages", warnings=["empty_pages:7", "recognised"])
    [version] = client.get(f"{URL}{document.pk}/").json()["versions"]
    assert "The limit is 2000 pages." in version["reason"]
    assert version["warnings"][0] == "Pages without text: 7."


def test_a_file_of_a_private_chat_is_nobody_elses(api, project, owner, editor):
    chat = create_session(project, editor, visibility=Visibility.PRIVATE)
    assert upload(api(editor), session=str(chat.pk)).status_code == 201
    document = File.objects.get()
    assert api(owner).get(URL).json()["results"] == []
    for path in ("", "text/", "download/"):
        assert api(owner).get(f"{URL}{document.pk}/{path}").status_code == 404
    assert upload(api(owner), session=str(chat.pk)).status_code == 404


def test_pages_that_are_no_pages_are_refused(api, project, owner):
    document = add_read(project, owner)
    client = api(owner)
    for pages in ("x", "0", "3-1", "1-999"):
        response = client.get(f"{URL}{document.pk}/text/", {"pages": pages})
        assert response.status_code == 400, pages
    [page] = client.get(f"{URL}{document.pk}/text/", {"pages": "2"}).json()["pages"]
    assert page["number"] == 2


def test_an_owner_forgets_a_file_and_an_editor_only_their_own(api, project, owner, editor):
    document = add_text(project, owner)
    assert api(editor).delete(f"{URL}{document.pk}/").status_code == 403
    body = api(owner).delete(f"{URL}{document.pk}/").json()
    assert body["removed"]["files"] == 1
    assert not File.objects.exists()


def test_the_list_takes_the_same_queries_for_many(
    api, project, owner, django_assert_max_num_queries
):
    for number in range(3):
        add_text(project, owner, f"{number}.md", f"{MANUAL} {number}")
    with django_assert_max_num_queries(7):
        assert len(api(owner).get(URL).json()["results"]) == 3


def test_the_command_names_a_file_that_cannot_be_opened(project, tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text(MANUAL)

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("memory.files.adding.add_upload", refuse)
    with pytest.raises(CommandError, match=r"a\.md: Permission denied"):
        call_command("add_files", "billing", str(path))


def test_the_command_adds_folders(project, owner, tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(MANUAL)
    (tmp_path / "docs" / ".hidden").write_text("x")
    call_command("add_files", "billing", str(tmp_path), "--user", "olive", "--wait")
    document = File.objects.get()
    assert (document.name, document.added_by) == ("docs/a.md", owner)
    assert document.revisions.get().state == FileState.READY
    assert "1 files." in capsys.readouterr().out
