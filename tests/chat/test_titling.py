"""The title of a chat after its first exchange."""

import pytest
from celery import current_app

from chat.conversations import edits, titles
from chat.conversations.generation import finalise
from chat.conversations.messages import ask, draft, post_message, post_messages
from chat.conversations.sessions import create_session, delete_session, update_session
from chat.models import Session, Status
from memory.forgetting.service import ForgetScope, forget

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(project, owner):
    return create_session(project, owner)


@pytest.fixture
def enqueued_tasks(monkeypatch):
    """The tasks that were enqueued, as (name, arguments)."""
    sent = []
    monkeypatch.setattr(current_app, "send_task", lambda name, args: sent.append((name, args)))
    return sent


def exchange(session, owner, text="How do we move billing over?", answer_text="In two steps."):
    message, reply = ask(session, text, owner)
    finalise(reply, answer_text, Status.COMPLETE, {})
    return message, reply


def test_the_model_names_a_chat_after_its_first_exchange(session, owner, scripted):
    exchange(session, owner)
    scripted.say("“Billing cutover plan.”")
    assert titles.write_title(session.pk) == "Billing cutover plan"
    session.refresh_from_db()
    assert (session.title, session.title_by_hand) == ("Billing cutover plan", False)
    content = scripted.requests[-1]["messages"][-1]["content"]
    assert "How do we move billing over?" in content and "In two steps." in content


def test_a_new_title_raises_the_version(session, owner, scripted):
    exchange(session, owner)
    session.refresh_from_db()
    before = session.version
    scripted.say("Billing cutover plan")
    titles.write_title(session.pk)
    session.refresh_from_db()
    assert session.version == before + 1


def test_a_title_chosen_by_hand_stays(session, owner, scripted):
    exchange(session, owner)
    update_session(session, title="Ours")
    assert titles.write_title(session.pk) is None
    assert scripted.requests == []


def test_a_deleted_chat_is_not_sent_to_the_model(session, owner, scripted):
    exchange(session, owner)
    delete_session(session)
    assert titles.write_title(session.pk) is None
    assert scripted.requests == []


def test_a_title_chosen_while_the_model_wrote_stays(session, owner, scripted, monkeypatch):
    exchange(session, owner)
    scripted.say("Too late")
    clean = titles.clean_title

    def meanwhile(answer):
        update_session(session, title="Ours")
        return clean(answer)

    monkeypatch.setattr(titles, "clean_title", meanwhile)
    assert titles.write_title(session.pk) is None
    session.refresh_from_db()
    assert session.title == "Ours"


@pytest.mark.parametrize("which", [0, 1], ids=["question", "reply"])
@pytest.mark.parametrize("change", ["forgotten", "deleted", "edited"])
def test_a_title_from_text_that_changed_while_the_model_wrote_is_discarded(
    project, session, owner, scripted, monkeypatch, change, which
):
    message = exchange(session, owner, "Hello", "The key is Amber-7.")[which]
    scripted.say("Key Amber-7")
    clean = titles.clean_title

    def meanwhile(answer):
        if change == "forgotten":
            forget(project, ForgetScope(message=message.pk))
        elif change == "deleted":
            edits.delete(message)
        else:
            edits.edit(message, "Something else", owner)
        return clean(answer)

    monkeypatch.setattr(titles, "clean_title", meanwhile)
    assert titles.write_title(session.pk) is None
    session.refresh_from_db()
    assert "Amber" not in session.title


def test_a_model_that_fails_leaves_the_first_words(session, owner, scripted):
    exchange(session, owner)
    scripted.status(500)
    assert titles.write_title(session.pk) is None
    session.refresh_from_db()
    assert session.title == "How do we move billing over?"


@pytest.mark.parametrize("model", ["extractive", "demo"])
def test_without_a_model_for_it_the_first_words_stay(session, owner, scripted, project, model):
    project.system_model = model
    project.save()
    exchange(session, owner)
    assert titles.write_title(session.pk) is None
    assert scripted.requests == []


def test_the_first_exchange_asks_for_a_title_and_later_ones_do_not(
    session, owner, scripted, enqueued_tasks, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        exchange(session, owner)
    with django_capture_on_commit_callbacks(execute=True):
        exchange(session, owner)
    assert enqueued_tasks.count(("chat.tasks.title_session", [str(session.pk)])) == 1


def test_a_failed_reply_asks_for_no_title(
    session, owner, scripted, enqueued_tasks, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        _, reply = ask(session, "Hello", owner)
        finalise(reply, "", Status.FAILED, {"error": "It broke."})
    assert enqueued_tasks == []


def test_a_broker_that_is_away_costs_no_reply(
    session, owner, scripted, monkeypatch, django_capture_on_commit_callbacks
):
    def away(name, args):
        raise OSError("no broker")

    monkeypatch.setattr(current_app, "send_task", away)
    with django_capture_on_commit_callbacks(execute=True):
        _, reply = exchange(session, owner)
    reply.refresh_from_db()
    assert reply.status == Status.COMPLETE


def test_a_session_without_a_reply_gets_none(session, owner, scripted):
    post_message(session, "Hello?", author=owner)
    assert titles.write_title(session.pk) is None


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Title: Billing cutover", "Billing cutover"),
        ("<think>Hmm, short.</think>\n\n**Billing cutover**", "Billing cutover"),
        ("# “Rechnung und Umzug”", "Rechnung und Umzug"),
        ("1. Billing cutover\n2. Moving billing", "Billing cutover"),
        ("14. April: the cutover", "14. April: the cutover"),
        ("<think>It never ends", ""),
        ("   \n\n", ""),
        ("word " * 60, "word word word word word word word word word word word…"),
        ("a\x00b\nsecond line", "ab"),
    ],
)
def test_a_title_is_freed_of_what_models_wrap_it_in(answer, title):
    assert titles.clean_title(answer) == title


def test_deleted_words_leave_the_title_too(session, owner):
    first, _ = exchange(session, owner, "The vault opens with 9472.")
    second, _ = exchange(session, owner)
    edits.delete(second)
    session.refresh_from_db()
    assert session.title == "The vault opens with 9472."
    edits.hide(first)
    session.refresh_from_db()
    assert session.title == ""
    edits.show(first)
    session.refresh_from_db()
    assert session.title == "The vault opens with 9472."


def test_a_cleared_chat_is_named_after_its_next_message(session, owner):
    exchange(session, owner, "The vault opens with 9472.")
    edits.clear(session)
    session.refresh_from_db()
    assert session.title == ""
    exchange(session, owner)
    session.refresh_from_db()
    assert session.title == "How do we move billing over?"


def test_a_later_deletion_leaves_the_title_of_a_chat_without_replies(session, owner):
    """An imported chat of people has a title from its source."""
    post_messages(session, [draft(text, author=owner) for text in ("Hello", "At nine.", "Ok.")])
    Session.objects.filter(pk=session.pk).update(title="#general")
    edits.delete(session.messages.get(text="At nine."))
    session.refresh_from_db()
    assert session.title == "#general"
    edits.delete(session.messages.get(text="Hello"))
    session.refresh_from_db()
    assert session.title == "Ok."


def test_a_deletion_leaves_a_title_chosen_by_hand(session, owner):
    message, _ = exchange(session, owner)
    update_session(session, title="Ours")
    edits.delete(message)
    session.refresh_from_db()
    assert session.title == "Ours"
