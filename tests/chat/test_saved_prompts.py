"""Saved prompts: who sees them, their variables, their files, and how they are forgotten."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chat import views
from chat.conversations import saved_prompts
from chat.models import SavedPrompt
from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from projects.core.errors import InvalidInputError, LimitError

pytestmark = pytest.mark.django_db

PAGE, API = "/projects/billing/prompts/", "/api/v1/projects/billing/prompts/"
REPORT = "Write the report of {{week}} for {{ customer }}, {{week}}."


def test_members_see_the_prompts_of_the_project_and_their_own(client, project, owner, editor):
    saved_prompts.put(project, None, "weekly", REPORT, owner)
    saved_prompts.put(project, owner, "mine", "A secret plan.", owner)
    client.force_login(editor)
    page = client.get(PAGE).content.decode()
    assert "weekly" in page and "A secret plan." not in page
    rows = client.get(PAGE + "?part=list").json()["prompts"]
    assert rows == [{"name": "weekly", "text": REPORT}]
    client.force_login(owner)
    assert "A secret plan." in client.get(PAGE).content.decode()


def test_the_api_adds_replaces_and_deletes(api, project, owner, editor):
    body = {"name": "weekly", "text": REPORT, "scope": "project"}
    created = api(owner).post(API, body, format="json").json()
    assert created["variables"] == ["week", "customer"]
    assert created["markdown"] == f"---\nname: weekly\n---\n\n{REPORT}\n"
    again = api(editor).post(API, body | {"text": "Shorter."}, format="json").json()
    assert again["id"] == created["id"]
    [prompt] = api(owner).get(API).json()
    assert (prompt["text"], prompt["scope"]) == ("Shorter.", "project")
    own = {"markdown": "---\nname: own\n---\nHello {{you}}"}
    assert api(editor).post(API, own, format="json").json()["scope"] == "mine"
    assert [row["name"] for row in api(owner).get(API).json()] == ["weekly"]
    path = f"{API}{created['id']}/"
    assert api(owner).delete(path).status_code == 204
    assert api(owner).get(path).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "a"},
        {"name": "a b", "text": "x"},
        {"name": "a", "text": " "},
        {"name": "a", "text": "x" * 20_001},
        {"name": "a", "text": " ".join(f"{{{{v{n}}}}}" for n in range(21))},
        {"markdown": "no name"},
    ],
)
def test_what_makes_no_sense_is_refused(api, owner, project, body):
    response = api(owner).post(API, body, format="json")
    assert response.status_code == 400
    assert not SavedPrompt.objects.exists()


def test_a_file_comes_back_as_it_was(client, owner, project):
    saved_prompts.put(project, None, "weekly", REPORT, owner)
    client.force_login(owner)
    prompt = SavedPrompt.objects.get()
    file = client.get(f"{PAGE}{prompt.pk}/")
    assert file["Content-Disposition"].startswith("attachment")
    prompt.delete()
    files = [
        SimpleUploadedFile("anything.md", file.content),
        SimpleUploadedFile("from the file.md", b"\xef\xbb\xbfNo front matter."),
        SimpleUploadedFile("broken.md", b"---\nname: no end\n"),
    ]
    client.post(PAGE, {"action": "import", "scope": "project", "files": files})
    texts = dict(SavedPrompt.objects.values_list("name", "text"))
    assert texts == {
        "weekly": REPORT,
        "from-the-file": "No front matter.",
        "broken": "---\nname: no end",
    }


def test_files_that_exceed_the_maximum_are_reported(client, owner, project, monkeypatch):
    monkeypatch.setattr(views.saved_prompts, "MAX_FILES", 2)
    client.force_login(owner)
    files = [SimpleUploadedFile(f"{name}.md", b"Text.") for name in "abc"]
    body = {"action": "import", "scope": "project", "files": files}
    page = client.post(PAGE, body, follow=True).content.decode()
    assert "At most 2 files can be imported at once." in page
    assert SavedPrompt.objects.count() == 2


def test_a_page_writes_and_shows_why_not(client, owner, viewer, project):
    client.force_login(owner)
    assert client.post(PAGE, {"action": "write", "name": "a", "text": "x"}).status_code == 302
    assert SavedPrompt.objects.get().user == owner
    refused = client.post(PAGE, {"action": "write", "name": "a b", "text": "x"})
    assert refused.status_code == 400 and "weekly-report" in refused.content.decode()
    # For whom the prompt is stays chosen: the two forms of the page have a checkbox each.
    body = {"action": "write", "name": "a b", "text": "x", "scope": "project"}
    assert client.post(PAGE, body).content.decode().count(" checked") == 1
    assert refused.content.decode().count(" checked") == 0
    client.force_login(viewer)
    assert client.post(PAGE, {"action": "write", "name": "b", "text": "x"}).status_code == 404


def test_the_number_of_prompts_is_limited(project, owner, monkeypatch):
    monkeypatch.setattr(saved_prompts, "MAX_PROMPTS", 1)
    saved_prompts.put(project, None, "a", "x", owner)
    saved_prompts.put(project, None, "a", "y", owner)
    saved_prompts.put(project, owner, "a", "x", owner)
    with pytest.raises(LimitError):
        saved_prompts.put(project, None, "b", "x", owner)


def test_variables_are_bounded():
    prompt = SavedPrompt(text="{{a}} {{ b }} {{a}} {{9}} {{" + "x" * 50 + "}} {{c d}} {{{{{{")
    assert prompt.variables == ["a", "b"]


def test_the_prompts_of_a_forgotten_user_are_deleted(project, owner, editor):
    saved_prompts.put(project, editor, "mine", "x", editor)
    saved_prompts.put(project, None, "shared", "x", editor)
    saved_prompts.put(project, None, "other", "x", owner)
    receipt = service.forget(project, ForgetScope(user=editor.pk), owner)
    assert [prompt.name for prompt in SavedPrompt.objects.all()] == ["other"]
    assert receipt.removed["saved_prompts"] == 2


def test_an_unfit_name_is_refused_by_the_write_path(project, owner):
    with pytest.raises(InvalidInputError):
        saved_prompts.put(project, None, "../x", "x", owner)


def test_a_prompt_without_a_valid_id_is_not_found(client, project, owner):
    client.force_login(owner)
    for pk in ("nonsense", ""):
        assert client.post(PAGE, {"action": "delete", "id": pk}).status_code == 404
