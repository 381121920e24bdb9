"""A whole import is revoked in one action, by every door, and does not come back."""

import io
import json

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.utils.formats import date_format
from django.utils.timezone import localtime

from chat.conversations.messages import post_message
from chat.importers import jobs
from chat.models import Import, ImportedStretch, Message, Session
from memory.forgetting import tombstones
from memory.forgetting.origins import find_origins
from memory.forgetting.replay import replay
from memory.forgetting.service import ForgetScope, forget, preview
from memory.models import ActivityVerb, Entry, Fact, FactSource, Tombstone, TombstoneKind
from projects.models import Membership
from tests.chat.test_import_command import lines

pytestmark = pytest.mark.django_db

FORGET = "/projects/billing/memory/forget/"
IMPORTS = "/projects/billing/imports/"
API = "/api/v1/projects/billing/forget/"
LIE = "The vault opens with the number nine four seven two."


@pytest.fixture(autouse=True)
def no_worker(monkeypatch):
    monkeypatch.setattr("chat.importers.jobs.current_app.send_task", lambda name, args: None)


@pytest.fixture
def bring(project):
    """Imports texts, by conversation, on behalf of a member."""

    def brought(user, **talks: list[str]) -> Import:
        content = "".join(lines(*texts, session=name) for name, texts in talks.items())
        import_job = jobs.create_import(
            project, user, SimpleUploadedFile("talk.jsonl", content.encode())
        )
        jobs.run_import(import_job.pk)
        import_job.refresh_from_db()
        assert import_job.state == "done", import_job.errors
        return import_job

    return brought


def standing() -> list[str]:
    return list(Message.objects.filter(forgotten_at=None).values_list("text", flat=True))


def page_of(response) -> str:
    return " ".join(response.content.decode().split())


def test_imported_chats_are_forgotten_with_later_messages(bring, project, owner):
    other_import = bring(owner, other=["This stays."])
    poisoned = bring(owner, a=[LIE, "Really."], b=["Two more."])
    talk = Session.objects.get(messages__text=LIE)
    post_message(talk, "Then I shall open it.", author=owner)
    receipt = forget(project, ForgetScope(upload=poisoned.pk), owner)
    assert (receipt.removed["sessions"], receipt.removed["messages"]) == (2, 4)
    assert receipt.removed["imports"] == 1
    assert standing() == ["This stays."]
    assert list(Import.objects.all()) == [other_import]
    assert not Tombstone.objects.filter(kind=TombstoneKind.UPLOAD).exclude(subject=str(poisoned.pk))
    assert ImportedStretch.objects.count() == 1
    act = project.activities.get(verb=ActivityVerb.FORGOTTEN)
    assert act.receipt["removed"]["imports"] == 1


def test_all_that_was_made_of_it_goes(bring, project, owner, remember):
    poisoned = bring(owner, a=[LIE, "Really."])
    talk = Session.objects.get(messages__text=LIE)
    entry = remember("- The vault has a number", talk)
    day = remember("- A day about the vault", granularity="day")
    Entry.objects.filter(pk=entry.pk).update(parent=day, state="absorbed")
    fact = Fact(project=project, subject="vault", predicate="opens with", object="9472")
    fact.valid_from, fact.written_by = talk.created_at, "scripted"
    fact.set_keys()
    fact.save()
    FactSource.objects.create(
        project=project,
        fact=fact,
        session=talk,
        message=talk.messages.get(text=LIE),
        entry=entry,
        valid_from=talk.created_at,
        confidence=1,
    )
    forget(project, ForgetScope(upload=poisoned.pk), owner)
    assert not Fact.objects.exists() and not Entry.objects.exists()


def test_the_same_file_does_not_bring_it_back(bring, project, owner):
    poisoned = bring(owner, a=[LIE], b=["Two more."])
    forget(project, ForgetScope(upload=poisoned.pk), owner)
    second_import = bring(owner, a=[LIE, "And more."], b=["Two more."])
    assert (second_import.imported, second_import.skipped) == (0, 3)
    assert standing() == []


def test_of_a_chat_that_it_only_added_to_the_rest_stays(bring, project, owner):
    bring(owner, a=["It began well."])
    poisoned = bring(owner, a=["It began well.", LIE])
    receipt = forget(project, ForgetScope(upload=poisoned.pk), owner)
    assert (receipt.removed["sessions"], receipt.removed["messages"]) == (0, 1)
    assert standing() == ["It began well."]
    assert bring(owner, a=["It began well.", LIE]).imported == 0


def test_with_another_condition_the_chats_stay(bring, project, owner):
    poisoned = bring(owner, a=[LIE])
    talk = Session.objects.get()
    post_message(talk, "Then I shall open it.", author=owner)
    receipt = forget(project, ForgetScope(upload=poisoned.pk, user=owner.pk), owner)
    assert (receipt.removed["messages"], receipt.removed["imports"]) == (1, 0)
    assert standing() == [LIE]


def test_a_preview_changes_nothing_and_says_what_the_deed_says(bring, project, owner):
    poisoned = bring(owner, a=[LIE], b=["Two more."])
    before = preview(project, ForgetScope(upload=poisoned.pk), owner)
    assert len(standing()) == 2 and Import.objects.exists()
    after = forget(project, ForgetScope(upload=poisoned.pk), owner)
    assert before.removed == after.removed


def test_one_under_way_comes_to_its_end(project, owner, monkeypatch):
    content = lines(LIE, session="a") + lines("Two more.", session="b")
    import_job = jobs.create_import(
        project, owner, SimpleUploadedFile("talk.jsonl", content.encode())
    )
    batches = []

    def between_batches(expected, *args):
        batches.append(list(expected))
        forget(project, ForgetScope(upload=import_job.pk), owner)

    monkeypatch.setattr("chat.importers.BATCH_MESSAGES", 1)
    monkeypatch.setattr("chat.importers.images.attach_images", between_batches)
    assert jobs.run_import(import_job.pk)
    assert len(batches) == 1
    assert standing() == []
    assert not Import.objects.exists() and not ImportedStretch.objects.exists()


def test_the_parts_in_a_restored_backup_are_forgotten_again(bring, project, owner):
    poisoned = bring(owner, a=[LIE])
    forget(project, ForgetScope(upload=poisoned.pk), owner)
    stones = tombstones.records_of(Tombstone.objects.all())
    assert TombstoneKind.UPLOAD in {stone.kind for stone in stones}
    Tombstone.objects.all().delete()
    Import.objects.create(pk=poisoned.pk, project=project, user=owner, name="talk.jsonl")
    replay(stones)
    assert not Import.objects.exists()


class TestPage:
    def test_the_list_of_imports_leads_there_and_the_page_says_what_goes(
        self, bring, client, owner
    ):
        poisoned = bring(owner, a=[LIE], b=["Two more."])
        post_message(Session.objects.get(messages__text=LIE), "Since then.", author=owner)
        client.force_login(owner)
        assert f"{FORGET}?upload={poisoned.pk}" in page_of(client.get(IMPORTS))
        page = page_of(client.get(FORGET, {"upload": poisoned.pk}))
        assert "2 imported chats." in page
        assert "1 later message in these chats" in page
        assert "<dt>3</dt><dd>messages and replies to them</dd>" in page
        assert len(standing()) == 3
        done = client.post(FORGET, {"upload": poisoned.pk, "reason": "wrong"}, follow=True)
        assert "Forget receipt" in page_of(done)
        assert standing() == []

    def test_messages_that_it_added_elsewhere_are_counted(self, bring, client, owner):
        bring(owner, a=["It began well."])
        poisoned = bring(owner, a=["It began well.", LIE, "Really."])
        client.force_login(owner)
        page = page_of(client.get(FORGET, {"upload": poisoned.pk}))
        assert "0 imported chats" in page
        assert "2 messages added to other chats." in page

    def test_one_of_which_nothing_is_left_is_not_offered(self, bring, client, owner):
        bring(owner, a=[LIE])
        empty = bring(owner, a=[LIE])
        client.force_login(owner)
        assert f"?upload={empty.pk}" not in page_of(client.get(IMPORTS))

    def test_an_editor_has_an_own_import_forgotten_until_others_speak_there(
        self, bring, client, editor, owner
    ):
        poisoned = bring(editor, a=[LIE])
        client.force_login(editor)
        assert f"?upload={poisoned.pk}" in page_of(client.get(IMPORTS))
        assert client.get(FORGET, {"upload": poisoned.pk}).status_code == 200
        post_message(Session.objects.get(), "Who says so?", author=owner)
        assert f"?upload={poisoned.pk}" not in page_of(client.get(IMPORTS))
        assert client.get(FORGET, {"upload": poisoned.pk}).status_code == 404

    def test_others_get_404(self, bring, client, owner, editor, viewer, stranger):
        poisoned = bring(owner, a=[LIE])
        for user in (editor, viewer, stranger):
            client.force_login(user)
            assert client.get(FORGET, {"upload": poisoned.pk}).status_code == 404
            assert client.post(FORGET, {"upload": poisoned.pk, "reason": "wrong"}).status_code in (
                403,
                404,
            )
        assert standing() == [LIE]

    def test_an_owner_is_led_to_it_from_what_was_made_of_it(
        self, bring, client, owner, editor, remember, project
    ):
        poisoned = bring(editor, a=[LIE])
        entry = remember("- The vault", Session.objects.get(), last_seq=1)
        assert find_origins(project, ForgetScope(entry=entry.pk)).uploads == [poisoned]
        client.force_login(owner)
        page = page_of(client.get(FORGET, {"entry": entry.pk}))
        assert f"?upload={poisoned.pk}" in page
        assert client.get(FORGET, {"upload": poisoned.pk}).status_code == 200

    def test_an_import_of_another_project_gets_404(self, bring, client, owner, project):
        from projects.services import create_project

        other = create_project(owner, name="Other", slug="other")
        content = lines(LIE).encode()
        import_job = jobs.create_import(other, owner, SimpleUploadedFile("talk.jsonl", content))
        jobs.run_import(import_job.pk)
        client.force_login(owner)
        assert client.get(FORGET, {"upload": import_job.pk}).status_code == 404


class TestApi:
    def test_it_is_previewed_and_forgotten(self, bring, api, owner):
        poisoned = bring(owner, a=[LIE], b=["Two more."])
        body = {"import": str(poisoned.pk)}
        payload = api(owner).post(API, body | {"preview": True}, "json").json()
        assert payload["removed"]["sessions"] == 2 and len(standing()) == 2
        payload = api(owner).post(API, body, "json").json()
        assert (payload["removed"]["messages"], payload["removed"]["imports"]) == (2, 1)
        assert standing() == []
        # What is gone already is no error.
        stones = Tombstone.objects.count()
        assert not any(api(owner).post(API, body, "json").json()["removed"].values())
        assert Tombstone.objects.count() == stones

    def test_no_id_is_a_400_that_names_it(self, project, api, owner):
        answer = api(owner).post(API, {"import": "x"}, "json")
        assert (answer.status_code, list(answer.json())) == (400, ["import"])

    def test_an_editor_has_only_own_ones_forgotten(self, bring, api, owner, editor):
        theirs = bring(owner, a=[LIE])
        assert api(editor).post(API, {"import": str(theirs.pk)}, "json").status_code == 403
        own = bring(editor, b=["Two more."])
        assert api(editor).post(API, {"import": str(own.pk)}, "json").status_code == 200
        assert standing() == [LIE]


class TestCommand:
    def test_it_forgets_what_another_command_brought(self, project, owner, tmp_path, capsys):
        path = tmp_path / "talk.jsonl"
        path.write_text(lines(LIE))
        call_command("import_conversations", path, "--project=billing", "--owner=olive")
        import_job = Import.objects.get()
        assert (import_job.state, import_job.imported, import_job.name, import_job.errors) == (
            "done",
            1,
            "talk.jsonl",
            [],
        )
        capsys.readouterr()
        out = io.StringIO()
        call_command(
            "forget", "--project=billing", f"--import={import_job.pk}", "--dry-run", stdout=out
        )
        assert json.loads(out.getvalue())["removed"]["messages"] == 1
        assert standing() == [LIE]
        call_command("forget", "--project=billing", f"--import={import_job.pk}", stdout=out)
        assert standing() == []

    def test_one_that_was_refused_says_why(self, project, owner, tmp_path):
        path = tmp_path / "talk.jsonl"
        path.write_text("nothing")
        with pytest.raises(Exception, match="has no line that is a message"):
            call_command("import_conversations", path, "--project=billing", "--owner=olive")
        import_job = Import.objects.get()
        assert (
            import_job.state == "failed" and "has no line that is a message" in import_job.errors[0]
        )


class TestAdmin:
    URL = "/admin/chat/import/"

    def test_it_asks_first(self, bring, admin_client, owner):
        poisoned = bring(owner, a=[LIE], b=["Two more."])
        body = {"action": "forget", "_selected_action": [str(poisoned.pk)]}
        page = page_of(admin_client.post(self.URL, body))
        assert "2 imported chats." in page and len(standing()) == 2
        assert date_format(localtime(poisoned.created_at), "DATETIME_FORMAT") in page
        assert poisoned.name not in page
        admin_client.post(self.URL, body | {"confirmed": "yes", "reason": "wrong"})
        assert standing() == []
        # The file's name is gone, also from the log of the admin.
        assert poisoned.name not in page_of(admin_client.get("/admin/"))
        assert LogEntry.objects.get().object_id == str(poisoned.pk)

    def test_the_texts_of_a_file_are_not_shown(self, bring, admin_client, owner):
        poisoned = bring(owner, a=[LIE])
        Import.objects.update(name="canary-4711.jsonl", errors=["canary-4711"])
        for path in (self.URL, f"{self.URL}{poisoned.pk}/change/"):
            answer = admin_client.get(path)
            assert answer.status_code == 200
            assert "canary-4711" not in page_of(answer)
        assert "0 imports" in page_of(admin_client.get(self.URL, {"q": "canary-4711"}))

    def test_a_user_with_view_permission_changes_nothing(
        self, bring, client, owner, django_user_model
    ):
        from django.contrib.auth.models import Permission

        poisoned = bring(owner, a=[LIE])
        staff = django_user_model.objects.create_user("sam", "", "pass-word-1", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_import"))
        client.force_login(staff)
        body = {"action": "forget", "_selected_action": [str(poisoned.pk)], "confirmed": "yes"}
        client.post(self.URL, body)
        assert standing() == [LIE]


def test_the_page_of_imports_asks_as_often_for_many(
    bring, client, owner, editor, project, django_assert_num_queries
):
    assert Membership.objects.filter(project=project).count() == 2
    for number in range(8):
        bring(editor, **{f"talk{number}": [f"Word {number}.", "And more."]})
    client.force_login(editor)
    client.get(IMPORTS)
    with django_assert_num_queries(5):
        assert page_of(client.get(IMPORTS)).count("?upload=") == 8


CANARY = "canary-4711"


@pytest.mark.parametrize("scope", ["session", "user", "message"])
def test_nothing_of_a_file_stays_in_its_import(project, owner, api, client, caplog, scope):
    content = lines(LIE, author="olive") + lines("This stays.", session="other") + f"{CANARY}\n"
    file = SimpleUploadedFile(f"{CANARY}.jsonl", content.encode())
    upload = jobs.create_import(project, owner, file)
    jobs.run_import(upload.pk)
    Import.objects.filter(pk=upload.pk).update(errors=[f"Image “{CANARY}”: no image."])
    message = Message.objects.get(text=LIE)
    named = {"session": message.session_id, "message": message.pk, "user": owner.pk}
    forget(project, ForgetScope(**{scope: named[scope]}), owner)
    upload.refresh_from_db()
    assert (upload.name, upload.errors, upload.imported) == ("", [], 2)
    client.force_login(owner)
    assert CANARY not in page_of(client.get(IMPORTS))
    assert CANARY not in api(owner).get("/api/v1/projects/billing/imports/").content.decode()
    assert CANARY not in caplog.text


def test_an_import_that_ends_later_keeps_no_errors_that_may_quote_it(project, owner, monkeypatch):
    import_file = jobs.import_file

    def forgotten_at_the_end(*args):
        import_file(*args)
        forget(project, ForgetScope(session=Session.objects.get().pk))

    content = "".join(lines(LIE, session="lies")) + "not JSON\n"
    file = SimpleUploadedFile("talk.jsonl", content.encode())
    import_job = jobs.create_import(project, owner, file)
    monkeypatch.setattr(jobs, "import_file", forgotten_at_the_end)
    jobs.run_import(import_job.pk)
    import_job.refresh_from_db()
    assert (import_job.state, import_job.name, import_job.errors) == ("done", "", [])
