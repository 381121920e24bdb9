"""The pages about projects."""

import re
from html import unescape

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.test.utils import CaptureQueriesContext

from chat.conversations.messages import post_message
from chat.models import Message, ModelProvider, Session
from memory.models import Cursor
from projects.models import MemberRole, Membership, Project
from projects.services import create_project, delete_project, set_archived
from tests.html import compact

pytestmark = pytest.mark.django_db


@pytest.fixture
def olive(client, owner):
    client.force_login(owner)
    return client


SETTINGS = {
    "name": "Billing",
    "instructions": "",
    "chat_model": "",
    "system_model": "",
    "history_limit": 100,
    "memory_enabled": "on",
    "bank_max_tokens": 2000,
    "blocks_max_tokens": 1000,
    "memory_daily_tokens": "",
    "keep_days": "",
    "idle_minutes": 10,
    "timezone": "UTC",
    "custom_context": "",
    "indexed_roles": ["user", "assistant"],
    "min_index_chars": 20,
    "close_after_hours": "",
}


def test_an_anonymous_visitor_is_asked_to_sign_in(client, project):
    for path in ("/", "/projects/billing/", "/projects/billing/settings/"):
        response = client.get(path)
        assert response.status_code == 302
        assert response["Location"].startswith("/accounts/login/")


def test_signing_in_leads_to_the_projects(client, owner):
    page = client.get("/accounts/login/")
    assert "Projects that remember" in page.content.decode()
    form = {"username": "olive", "password": "pass-word-1"}
    assert client.post("/accounts/login/", form)["Location"] == "/"


def test_the_list_shows_my_projects_only(olive, project, stranger):
    create_project(stranger, name="Secret")
    page = olive.get("/").content.decode()
    assert "Billing" in page
    assert "Secret" not in page


def test_a_project_is_created_and_opened(olive, owner):
    response = olive.post("/", {"name": "Field notes", "instructions": "Be brief."})
    assert response["Location"] == "/projects/field-notes/"
    project = Project.objects.get(slug="field-notes")
    assert project.memberships.get().role == MemberRole.OWNER


def test_a_project_without_a_name_is_refused_beside_the_field(olive):
    response = olive.post("/", {"name": ""})
    assert response.status_code == 400
    assert "This field is required." in response.content.decode()


def test_the_list_takes_the_same_queries_however_many_projects(olive, owner, project):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            olive.get("/")
        return len(captured)

    # The first look of a browser is noted.
    queries()
    few = queries()
    for number in range(5):
        create_project(owner, name=f"More {number}")
    assert queries() == few


def test_a_stranger_gets_404(client, project, stranger):
    client.force_login(stranger)
    assert client.get("/projects/billing/settings/").status_code == 404
    assert client.post("/projects/billing/settings/", SETTINGS).status_code == 404
    assert client.post("/projects/billing/members/", {"action": "add"}).status_code == 404


def test_every_member_reads_that_memory_is_shared(client, viewer, project):
    client.force_login(viewer)
    page = client.get("/projects/billing/settings/").content.decode()
    assert "can see what the project remembers" in page
    assert 'name="idle_minutes"' not in page


def test_only_owners_change_settings(client, editor, project):
    client.force_login(editor)
    assert client.post("/projects/billing/settings/", SETTINGS).status_code == 404


def test_settings_are_saved(olive, project):
    changed = SETTINGS | {"bank_max_tokens": 500, "timezone": "Europe/Berlin"}
    assert olive.post("/projects/billing/settings/", changed).status_code == 302
    project.refresh_from_db()
    assert (project.bank_max_tokens, project.timezone) == (500, "Europe/Berlin")
    assert project.memory_enabled
    assert "Saved." in olive.get("/projects/billing/settings/").content.decode()


def test_a_tab_saves_nothing_of_another(olive, project):
    form = SETTINGS | {"tab": "memory", "bank_max_tokens": 500, "name": "Ledger", "keep_days": 3}
    response = olive.post("/projects/billing/settings/", form)
    assert response["Location"] == "/projects/billing/settings/#memory"
    project.refresh_from_db()
    assert (project.bank_max_tokens, project.name, project.keep_days) == (500, "Billing", None)
    response = olive.post("/projects/billing/settings/", form | {"tab": "<nothing>"})
    assert response["Location"] == "/projects/billing/settings/"


def test_time_zones_and_models_are_lists(olive, project):
    ModelProvider.objects.create(name="ollama", kind="ollama", catalogue=[{"name": "qwen3"}])
    Project.objects.update(timezone="US/Pacific")
    page = olive.get("/projects/billing/settings/").content.decode()
    assert '<option value="US/Pacific" selected>US/Pacific</option>' in page
    assert '<option value="Europe/Berlin">Berlin</option>' in page
    assert page.count("US/") == 3
    assert page.count('<option value="ollama:qwen3">') == 3
    assert page.count('<option value="extractive">') == 1


def test_the_slug_is_shown_where_projects_are(olive, client, viewer, project):
    assert "<code>billing</code>" in olive.get("/").content.decode()
    assert "<code>billing</code>" in olive.get("/projects/billing/settings/").content.decode()
    client.force_login(viewer)
    assert "<code>billing</code>" in client.get("/projects/billing/settings/").content.decode()


def settings_fields(page: str) -> dict[str, str | list[str]]:
    """What the settings page would send as it is."""
    fields: dict[str, str | list[str]] = {"indexed_roles": []}
    for tag in re.findall(r"<input[^>]+>", page):
        attributes = {key: unescape(value) for key, value in re.findall(r'(\S+)="([^"]*)"', tag)}
        if "name" in attributes and (attributes.get("type") != "checkbox" or " checked" in tag):
            value = attributes.get("value", "on" if "checkbox" in tag else "")
            if attributes["name"] == "indexed_roles":
                fields["indexed_roles"].append(value)
            else:
                fields[attributes["name"]] = value
    for name, options in re.findall(r'<select name="(\w+)".*?>(.*?)</select>', page, re.DOTALL):
        fields[name] = re.search(r'value="([^"]*)" selected', options)[1]
    for name in ("instructions", "custom_context"):
        text = re.search(rf'<textarea name="{name}"[^>]*>\s?(.*?)</textarea>', page, re.DOTALL)
        fields[name] = unescape(text[1])
    del fields["tab"]
    return fields


def test_a_page_that_is_old_does_not_undo_what_others_saved(olive, project):
    old = settings_fields(olive.get("/projects/billing/settings/").content.decode())
    Project.objects.update(bank_max_tokens=700, memory_enabled=False, instructions="Be brief.")
    olive.post("/projects/billing/settings/", old | {"idle_minutes": "3"})
    project.refresh_from_db()
    assert project.idle_minutes == 3
    assert (project.bank_max_tokens, project.memory_enabled) == (700, False)
    assert project.instructions == "Be brief."


def test_unchanged_settings_are_not_saved(olive, project):
    form = settings_fields(olive.get("/projects/billing/settings/").content.decode())
    with CaptureQueriesContext(connection) as captured:
        assert olive.post("/projects/billing/settings/", form).status_code == 302
    statements = [query["sql"] or "" for query in captured]
    assert not [it for it in statements if it.startswith('UPDATE "projects_project"')]


def test_a_box_is_unticked(olive, project):
    form = settings_fields(olive.get("/projects/billing/settings/").content.decode())
    del form["memory_enabled"]
    olive.post("/projects/billing/settings/", form)
    project.refresh_from_db()
    assert not project.memory_enabled


def test_owners_let_words_be_shared_and_every_member_reads_of_it(client, olive, project, viewer):
    form = settings_fields(olive.get("/projects/billing/settings/").content.decode())
    assert "share_raw_turns" not in form
    olive.post("/projects/billing/settings/", form | {"share_raw_turns": "on"})
    project.refresh_from_db()
    assert project.share_raw_turns
    client.force_login(viewer)
    assert "Quote shared chats" in client.get("/projects/billing/settings/").content.decode()


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("bank_max_tokens", 5, "greater than or equal to 100"),
        ("history_limit", 5000, "less than or equal to 1000"),
        ("timezone", "Mars", "not a time zone"),
        ("chat_model", "gpt", "not a model name"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_reason(olive, project, field, value, complaint):
    response = olive.post("/projects/billing/settings/", SETTINGS | {field: value})
    assert response.status_code == 400
    assert complaint in response.content.decode()
    before = getattr(project, field)
    project.refresh_from_db()
    assert getattr(project, field) == before


def role_of(project, name: str) -> str | None:
    return project.memberships.filter(user__username=name).values_list("role", flat=True).first()


def test_a_member_gets_another_role_and_is_removed(olive, project, stranger):
    path = "/projects/billing/members/"
    Membership.objects.create(project=project, user=stranger, role="viewer")
    olive.post(path, {"action": "role", "username": "stan", "role": "editor"})
    assert role_of(project, "stan") == MemberRole.EDITOR
    olive.post(path, {"action": "remove", "username": "stan"})
    assert role_of(project, "stan") is None
    assert olive.post(path, {"action": "remove", "username": "\0"}).status_code == 404


@pytest.mark.parametrize(
    ("name", "complaint"), [("no body", "valid username"), ("olive", "already a member")]
)
def test_a_user_who_cannot_be_added_is_refused_beside_the_field(olive, project, name, complaint):
    form = {"action": "add", "username": name, "role": "viewer"}
    response = olive.post("/projects/billing/members/", form)
    assert response.status_code == 400
    assert complaint in response.content.decode()
    assert role_of(project, "olive") == MemberRole.OWNER


@pytest.mark.parametrize("change", [{"action": "role", "role": "viewer"}, {"action": "remove"}])
def test_the_last_owner_stays(olive, project, change):
    response = olive.post("/projects/billing/members/", {"username": "olive"} | change, follow=True)
    assert "needs at least one owner" in response.content.decode()
    assert role_of(project, "olive") == MemberRole.OWNER


def test_an_unknown_role_is_refused(olive, editor, project):
    form = {"action": "role", "username": "edgar", "role": "king"}
    assert (
        "This role does not exist"
        in olive.post("/projects/billing/members/", form, follow=True).content.decode()
    )
    assert role_of(project, "edgar") == MemberRole.EDITOR


def test_members_change_by_owners_only(client, editor, project):
    client.force_login(editor)
    for form in (
        {"action": "remove", "username": "olive"},
        {"action": "role", "username": "edgar", "role": "owner"},
        {"action": "add", "username": "stan", "role": "viewer"},
    ):
        assert client.post("/projects/billing/members/", form).status_code == 404
    assert Membership.objects.filter(project=project).count() == 2
    assert role_of(project, "edgar") == MemberRole.EDITOR


@pytest.mark.parametrize("name", ["edgar", "vera"])
def test_a_member_leaves(client, editor, viewer, project, name):
    client.force_login({"edgar": editor, "vera": viewer}[name])
    page = client.get("/projects/billing/settings/").content.decode()
    assert page.count("Leave this project") == page.count('value="remove"') == 1
    assert "You lose access to all chats of the project, including your private ones." in page
    form = {"action": "remove", "username": name}
    response = client.post("/projects/billing/members/", form, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "You left Billing." in response.content.decode()
    assert role_of(project, name) is None
    assert client.post("/projects/billing/members/", form).status_code == 404


def test_an_owner_leaves_another_owner_behind(olive, editor, project):
    Membership.objects.filter(user=editor).update(role="owner")
    page = olive.get("/projects/billing/settings/").content.decode()
    assert page.count("Leave this project") == 1
    assert page.count('value="remove"') == 2
    form = {"action": "remove", "username": "olive"}
    response = olive.post("/projects/billing/members/", form, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert role_of(project, "olive") is None


def test_removing_a_member_is_confirmed(olive, editor):
    page = compact(olive.get("/projects/billing/settings/").text)
    row = page[page.index('value="edgar"') :]
    assert '<details class="stack"><summary class="quiet danger">Remove</summary>' in row
    assert "edgar loses access to all chats of the project, including private ones." in row
    assert 'value="remove">Remove from the project</button>' in row


def test_a_member_leaves_an_archived_project(client, owner, editor, viewer, project):
    set_archived(project, True, owner)
    client.force_login(owner)
    page = client.get("/projects/billing/settings/").text
    assert page.count('value="remove"') == page.count("Leave this project") == 1
    assert 'name="role"' not in page
    form = {"action": "remove", "username": "vera"}
    assert client.post("/projects/billing/members/", form).status_code == 409
    client.force_login(viewer)
    assert "Leave this project" in client.get("/projects/billing/settings/").text
    edgar = {"action": "remove", "username": "edgar"}
    assert client.post("/projects/billing/members/", edgar).status_code == 404
    response = client.post("/projects/billing/members/", form, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert role_of(project, "vera") is None


@pytest.mark.parametrize("place", ["members", "delete"])
def test_a_reload_of_what_was_refused_leads_to_the_settings(olive, project, place):
    response = olive.get(f"/projects/billing/{place}/")
    assert response["Location"] == "/projects/billing/settings/"


def test_an_owner_deletes_a_project_by_its_slug(olive, project):
    response = olive.post("/projects/billing/delete/", {"slug": "billing"}, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "Billing was deleted." in response.content.decode()
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("slug", "complaint"), [("Billing", "not match the project’s slug"), ("", "field is required")]
)
def test_a_wrong_slug_deletes_nothing(olive, project, slug, complaint):
    response = olive.post("/projects/billing/delete/", {"slug": slug})
    assert response.status_code == 400
    assert complaint in response.content.decode()
    assert Project.objects.exists()


def test_owners_alone_delete_a_project(client, editor, viewer, stranger, project):
    for user in (editor, viewer, stranger):
        client.force_login(user)
        assert client.post("/projects/billing/delete/", {"slug": "billing"}).status_code == 404
    assert Project.objects.exists()


def test_a_project_goes_with_its_chats_and_its_memory(owner, project):
    session = Session.objects.create(project=project, creator=owner)
    post_message(session, "The cutover is on 3 March.", author=owner)
    delete_project(project)
    assert not Message.objects.exists()
    assert not Cursor.objects.exists()


def test_a_viewer_reads_why_there_is_nothing_to_write_with(client, viewer, project):
    client.force_login(viewer)
    page = client.get("/projects/billing/settings/").content.decode()
    assert "You are a viewer." in page
    assert "Delete project" not in page


def test_browsers_that_ask_for_it_by_name_get_the_icon(client):
    assert client.get("/favicon.ico")["Location"] == static("img/favicon.svg")


def test_pages_carry_no_inline_style_or_script(olive, project):
    for path in ("/", "/projects/billing/settings/"):
        page = olive.get(path).content.decode()
        assert " style=" not in page
        assert " onclick=" not in page
        assert "<script>" not in page


def test_a_missing_page_has_an_error_page_of_strata(olive):
    response = olive.get("/nothing/")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


@pytest.mark.parametrize("name", ["404", "403", "403_csrf", "413", "500"])
def test_an_error_page_needs_nothing_to_be_shown(name):
    assert "Back to projects" in render_to_string(f"{name}.html")


def test_the_daily_tokens_of_memory_are_set_and_emptied(client, owner, project):
    client.force_login(owner)
    client.post("/projects/billing/settings/", SETTINGS | {"memory_daily_tokens": 50_000})
    project.refresh_from_db()
    assert project.memory_daily_tokens == 50_000
    emptied = {"initial-memory_daily_tokens": 50_000, "memory_daily_tokens": ""}
    client.post("/projects/billing/settings/", SETTINGS | emptied)
    project.refresh_from_db()
    assert project.memory_daily_tokens is None


@pytest.mark.parametrize(("name", "value"), [("idle_minutes", -1), ("memory_daily_tokens", 1)])
def test_invalid_memory_settings_are_refused(client, owner, project, name, value):
    client.force_login(owner)
    response = client.post("/projects/billing/settings/", SETTINGS | {name: value})
    assert response.status_code == 400
    assert 'class="error"' in response.content.decode()
