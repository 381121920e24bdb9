"""POST /api/v1/projects/{slug}/forget/, DELETE …/entries/{id}/, and the command."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from chat.conversations.messages import draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message
from memory import facts
from memory.forgetting import service
from memory.layers.conversations import summarise
from memory.models import Activity, ActivityVerb, Entry, Fact
from memory.moderation import entry_operations
from projects.core.errors import NotAllowedError
from projects.models import Membership
from projects.services import create_project
from tests.memory.file_helpers import add_text

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/forget/"
ACT = "/api/v1/projects/billing/memory/act/"
SCOPE_ERROR = "The token's scopes do not allow this."


@pytest.fixture
def session(project, owner):
    return create_session(project, owner)


def make_memories(session, user):
    """An entry, a fact and a file."""
    statement = facts.Statement("The vault", "is", "open", datetime.now(UTC))
    member = Membership.objects.get(project=session.project, user=user)
    return {
        "entry": summarise(session.pk, datetime.now(UTC) + timedelta(hours=1)),
        "fact": facts.create_fact(member, statement)[0],
        "file": add_text(session.project, user),
    }


@pytest.fixture
def messages(session, owner, editor):
    """What the owner said, and what the editor did."""
    texts = [draft("The vault number is 9472.", author=owner), draft("By Edgar.", author=editor)]
    return post_messages(session, texts)


def test_an_owner_has_a_message_forgotten(messages, owner, api):
    answer = api(owner).post(URL, {"message": messages[0].pk}, format="json")
    assert answer.status_code == 200
    assert answer.json()["removed"]["messages"] == 1
    assert answer.json()["search"]["found"] == []
    assert not Message.objects.filter(text__contains="9472").exists()


def test_a_preview_changes_nothing(messages, owner, api):
    answer = api(owner).post(URL, {"message": messages[0].pk, "preview": True}, format="json")
    assert (answer.json()["id"], answer.json()["removed"]["messages"]) == (None, 1)
    assert Message.objects.filter(text__contains="9472").exists()


def test_nothing_named_is_a_400(messages, owner, api):
    assert api(owner).post(URL, {}, format="json").status_code == 400
    assert api(owner).post(URL, {"sources": True}, format="json").status_code == 400
    assert Message.objects.filter(text__contains="9472").exists()


@pytest.mark.parametrize(
    ("field", "value"), [("user", "nobody"), ("before", "soon"), ("session", "x"), ("reason", "x")]
)
def test_a_condition_that_makes_no_sense_is_a_400_that_names_it(messages, owner, api, field, value):
    answer = api(owner).post(URL, {"message": messages[0].pk, field: value}, format="json")
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert Message.objects.filter(text__contains="9472").exists()


@pytest.mark.parametrize(("url", "field"), [(URL, "befor"), (URL, "previw"), (ACT, "previw")])
def test_an_unknown_field_is_a_400_and_forgets_nothing(messages, session, owner, api, url, field):
    entry = summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    body = {"user": "edgar"} if url == URL else {"action": "forget", "entries": [entry.pk]}
    answer = api(owner).post(url, body | {field: True}, format="json")
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert Message.objects.filter(forgotten_at=None).count() == len(messages)
    assert Entry.objects.filter(pk=entry.pk).exists()


@pytest.mark.parametrize("name", ["session", "message", "entry", "fact", "import"])
def test_an_id_that_never_was_here_is_404(messages, stranger, owner, api, name):
    mine = create_session(create_project(stranger, name="Elsewhere"), stranger)
    for pk in (uuid4(), mine.pk):
        for wish in ({name: pk}, {name: pk, "preview": True}):
            answer = api(owner).post(URL, wish, format="json")
            assert answer.status_code == 404
            assert answer.json() == {"detail": f"There is no such {name} in this project."}
    with pytest.raises(CommandError, match=f"no such {name}"):
        call_command("forget", f"--{name}", str(mine.pk), project="billing")
    assert not Activity.objects.filter(verb=ActivityVerb.FORGOTTEN).exists()


def test_an_object_that_is_already_deleted_is_no_error(messages, owner, api):
    wish = {"message": messages[0].pk}
    api(owner).post(URL, wish, format="json")
    answer = api(owner).post(URL, wish, format="json")
    assert answer.status_code == 200
    assert not any(answer.json()["removed"].values())


def test_an_editor_has_own_words_forgotten_and_nobody_else_s(messages, editor, api):
    client = api(editor)
    assert client.post(URL, {"message": messages[0].pk}, format="json").status_code == 403
    assert client.post(URL, {"user": "olive"}, format="json").status_code == 403
    assert client.post(URL, {"session": messages[0].session_id}, format="json").status_code == 403
    assert client.post(URL, {"before": "2030-01-01T00:00Z"}, format="json").status_code == 403
    assert client.post(URL, {"user": "edgar"}, format="json").status_code == 200
    assert list(Message.objects.exclude(text="").values_list("seq", flat=True)) == [1]


def test_it_does_not_tell_which_accounts_exist(api, project, owner, stranger):
    answers = [
        api(owner).post(URL, {"user": name, "preview": True}, format="json")
        for name in ("stan", "nobody")
    ]
    assert {answer.status_code for answer in answers} == {400}
    assert answers[0].json() == answers[1].json()


def test_what_a_former_member_left_can_be_forgotten(api, project, owner, editor):
    add_text(project, editor)
    Membership.objects.filter(user=editor).delete()
    answer = api(owner).post(URL, {"user": "edgar"}, format="json")
    assert answer.json()["removed"]["files"] == 1


@pytest.mark.parametrize("kind", ["fact", "entry"])
def test_a_former_member_who_only_wrote_into_memory_can_be_forgotten(
    api, messages, owner, editor, kind
):
    made = make_memories(messages[0].session, owner)
    if kind == "fact":
        statement = replace(facts.Statement.of(made["fact"]), object="shut")
        facts.edit(made["fact"], statement, editor)
    else:
        entry_operations.edit(made["entry"], "- The vault is shut.", editor)
    Message.objects.filter(author=editor).update(author=None)
    Membership.objects.filter(user=editor).delete()
    answer = api(owner).post(URL, {"user": "edgar"}, format="json")
    assert answer.status_code == 200
    assert not Fact.objects.filter(object="shut").exists()
    assert not Entry.objects.filter(summary__contains="shut").exists()


@pytest.mark.parametrize("own", ["user", "message"])
@pytest.mark.parametrize("other", ["entry", "fact", "file"])
def test_own_words_do_not_permit_to_forget_what_others_made(
    messages, session, owner, editor, api, own, other
):
    named = make_memories(session, owner)[other]
    mine = {"user": editor.username, "message": messages[1].pk}[own]
    answer = api(editor).post(URL, {own: mine, other: named.pk}, format="json")
    assert answer.status_code == 400
    assert "alone" in answer.content.decode()
    assert type(named).objects.filter(pk=named.pk).exists()


@pytest.fixture
def changed(request, messages, session, project, owner, editor):
    """A text that an owner wrote and then an editor changed."""
    if request.param == "entry":
        entry = summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
        entry_operations.edit(entry, "- By Olive.", owner)
        entry.refresh_from_db()
        entry_operations.edit(entry, "- By Olive!", editor)
        return entry
    statement = facts.Statement("The vault", "is", "open", datetime.now(UTC))
    owned = Membership.objects.get(project=project, user=owner)
    fact, _ = facts.create_fact(owned, statement)
    return facts.edit(fact, replace(statement, confidence=0.9), editor)


@pytest.mark.parametrize("changed", ["entry", "fact"], indirect=True)
@pytest.mark.parametrize("extra", [{}, {"before": "2030-01-01T00:00Z"}, {"preview": True}])
def test_own_words_do_not_include_texts_that_others_wrote_too(changed, editor, owner, api, extra):
    before = type(changed).objects.values().get(pk=changed.pk)
    wish = {"user": "edgar"} | extra
    answer = api(editor).post(URL, wish, format="json")
    assert answer.status_code == 403
    assert type(changed).objects.values().get(pk=changed.pk) == before
    assert api(owner).post(URL, wish, format="json").status_code == 200


@pytest.mark.parametrize("changed", ["entry", "fact"], indirect=True)
def test_own_words_of_one_chat_are_forgotten_without_texts_of_others(changed, session, editor, api):
    answer = api(editor).post(URL, {"user": "edgar", "session": session.pk}, format="json")
    assert answer.status_code == 200
    assert type(changed).objects.filter(pk=changed.pk).exists()


def test_an_editor_takes_along_facts_that_nobody_else_wrote(messages, project, editor, api):
    member = Membership.objects.get(project=project, user=editor)
    statement = facts.Statement("The vault", "is", "open", datetime.now(UTC))
    fact, _ = facts.create_fact(member, statement)
    facts.edit(fact, replace(statement, object="closed"), editor)
    answer = api(editor).post(URL, {"user": "edgar"}, format="json")
    assert (answer.status_code, answer.json()["removed"]["facts"]) == (200, 2)


def test_a_text_that_was_changed_after_the_check_is_kept(messages, project, owner, editor):
    """The request waits for a lock while the editor changes a fact of the owner."""
    statement = facts.Statement("The vault", "is", "open", datetime.now(UTC))
    owned = Membership.objects.get(project=project, user=owner)
    fact, _ = facts.create_fact(owned, statement)
    scope = service.ForgetScope(user=editor.pk)
    assert scope.is_permitted_to(Membership.objects.get(project=project, user=editor))
    facts.edit(fact, replace(statement, confidence=0.9), editor)
    with pytest.raises(NotAllowedError):
        service.forget(project, scope, editor)
    assert Fact.objects.current().get().object == "open"


def test_a_viewer_forgets_nothing(messages, viewer, api):
    assert api(viewer).post(URL, {"user": "vera"}, format="json").status_code == 403


def test_a_stranger_gets_404(messages, stranger, api):
    assert api(stranger).post(URL, {"message": messages[0].pk}, format="json").status_code == 404


def test_deleting_an_entry_forgets_it(messages, session, owner, editor, api):
    entry = summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    url = f"/api/v1/projects/billing/memory/entries/{entry.pk}/"
    assert api(editor).delete(url).status_code == 403
    answer = api(owner).delete(url)
    assert (answer.status_code, answer.json()["removed"]["entries"]) == (200, 1)
    assert not Entry.objects.exists()
    assert api(owner).delete(url).status_code == 404


@pytest.mark.parametrize(
    "action", [{"action": "forget"}, {"action": "redact", "text": "9472"}], ids=["forget", "redact"]
)
@pytest.mark.parametrize("preview", [False, True])
def test_final_actions_need_a_token_of_the_scope_admin(
    messages, session, owner, api, action, preview
):
    entry = summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    wanted = action | {"entries": [entry.pk], "preview": preview}
    answer = api(owner, scopes=["read", "write"]).post(ACT, wanted, format="json")
    assert (answer.status_code, answer.json()) == (403, {"detail": SCOPE_ERROR})
    assert "WWW-Authenticate" not in answer.headers
    entry.refresh_from_db()
    assert "9472" in entry.summary
    answer = api(owner, scopes=["read", "write", "admin"]).post(ACT, wanted, format="json")
    assert (answer.status_code, answer.json()["done"]) == (200, [str(entry.pk)])


def test_an_invalid_final_action_is_a_400_and_others_need_only_write(messages, session, owner, api):
    entry = summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    client = api(owner, scopes=["write"])
    bad = {"action": "redact", "entries": [entry.pk]}
    assert client.post(ACT, bad, format="json").status_code == 400
    for action in ("pin", "unpin", "hide", "show"):
        good = {"action": action, "entries": [entry.pk]}
        assert client.post(ACT, good, format="json").status_code == 200


@pytest.mark.parametrize(
    ("kind", "path"), [("entry", "memory/entries"), ("fact", "facts"), ("file", "files")]
)
def test_deleting_needs_a_token_of_the_scope_admin(messages, session, owner, api, kind, path):
    memory = make_memories(session, owner)[kind]
    url = f"/api/v1/projects/billing/{path}/{memory.pk}/"
    answer = api(owner, scopes=["read", "write"]).delete(url)
    assert (answer.status_code, answer.json()) == (403, {"detail": SCOPE_ERROR})
    assert type(memory).objects.filter(pk=memory.pk).exists()
    assert api(owner, scopes=["admin"]).delete(url).status_code == 200


def test_a_request_without_a_token_has_no_scopes_to_check(messages, session, owner):
    client, memory = APIClient(), make_memories(session, owner)
    client.force_authenticate(owner)
    assert client.delete(f"/api/v1/projects/billing/facts/{memory['fact'].pk}/").status_code == 200
    wanted = {"action": "forget", "entries": [memory["entry"].pk]}
    assert client.post(ACT, wanted, format="json").status_code == 200
    assert not Entry.objects.filter(pk=memory["entry"].pk).exists()


def test_the_command_prints_the_receipt(messages, project, capsys):
    call_command("forget", project="billing", user="olive", dry_run=True)
    assert json.loads(capsys.readouterr().out)["removed"]["messages"] == 1
    assert Message.objects.filter(text__contains="9472").exists()
    call_command("forget", project="billing", user="olive")
    assert json.loads(capsys.readouterr().out)["id"]
    assert not Message.objects.filter(text__contains="9472").exists()


def test_the_command_says_what_is_missing(project):
    with pytest.raises(CommandError, match="Choose what to forget"):
        call_command("forget", project="billing")
    with pytest.raises(CommandError, match="no project"):
        call_command("forget", project="else", user="olive")
    with pytest.raises(CommandError, match="no user"):
        call_command("forget", project="billing", user="nobody")
