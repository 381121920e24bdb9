"""Webhook events hold only ids and are stored in the transaction of the change."""

import json
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.conversations import edits
from chat.conversations.generation import finalise
from chat.conversations.messages import ask, post_message
from chat.conversations.sessions import close_idle_sessions, update_session
from chat.importers import jobs
from chat.models import Session, Visibility
from memory import webhooks
from memory.facts import Statement, create_fact, update
from memory.forgetting.service import ForgetScope, forget, preview
from memory.models import Activity, ActivityVerb, Delivery, ReviewReason
from memory.models.activity import record_activity
from memory.moderation import entry_operations
from projects.core.models import new_id

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(project, editor):
    return Session.objects.create(project=project, creator=editor, visibility=Visibility.PROJECT)


@pytest.fixture
def private(project, editor):
    return Session.objects.create(project=project, creator=editor, visibility=Visibility.PRIVATE)


def stored_events() -> list[tuple[str, dict]]:
    """The events with their data, without the project, which all have."""
    rows = list(Delivery.objects.order_by("id").values_list("event", "data"))
    assert all(data.pop("project") == "billing" for _, data in rows)
    return rows


def test_a_message_and_the_reply_to_it(webhook, shared, editor):
    message, reply = ask(shared, "When is the cutover?", editor)
    assert stored_events() == [
        (
            "message.posted",
            {"session": str(shared.pk), "message": str(message.pk), "role": "user"},
        )
    ]
    assert finalise(reply, "On 3 March.", "complete", {})
    assert stored_events()[1:] == [
        (
            "reply.finished",
            {"session": str(shared.pk), "message": str(reply.pk), "status": "complete"},
        )
    ]
    assert not finalise(reply, "On 3 March.", "complete", {})
    assert len(stored_events()) == 2


def test_a_reply_that_failed_is_finished_too(webhook, shared, editor):
    _message, reply = ask(shared, "When is the cutover?", editor)
    finalise(reply, "", "failed", {"error": "The model did not answer in time."})
    assert stored_events()[1][1]["status"] == "failed"


def test_private_messages_send_no_event(webhook, private, editor):
    _message, reply = ask(private, "My salary is 93,500 euros.", editor)
    finalise(reply, "Noted.", "complete", {})
    assert stored_events() == []


def test_a_fork_says_nothing_new(webhook, shared, editor):
    message = post_message(shared, "Hello", author=editor)
    edits.fork(message, editor)
    assert len(stored_events()) == 1


def test_an_edit_and_a_deletion_of_a_message(webhook, shared, editor):
    message = post_message(shared, "The cutover is in Mai.", author=editor)
    Delivery.objects.all().delete()
    named = {"session": str(shared.pk), "message": str(message.pk), "role": "user"}
    edits.edit(message, "The cutover is in May.", editor)
    edits.delete(message)
    edits.delete(message)
    assert stored_events() == [
        ("message.edited", named | {"version": 2}),
        ("message.deleted", named),
    ]


def test_a_message_that_is_hidden_and_shown_again(webhook, shared, editor):
    message = post_message(shared, "The cutover is in May.", author=editor)
    Delivery.objects.all().delete()
    edits.hide(message)
    edits.show(message)
    edits.hide(message)
    edits.delete(message)
    events = [event for event, _data in stored_events()]
    assert events == ["message.deleted", "message.edited", "message.deleted"]


def test_clearing_a_chat_reports_each_message(webhook, shared, editor):
    messages = [post_message(shared, text, author=editor) for text in ("One", "Two")]
    Delivery.objects.all().delete()
    edits.clear(shared)
    edits.clear(shared)
    assert [(event, data["message"]) for event, data in stored_events()] == [
        ("message.deleted", str(message.pk)) for message in messages
    ]


def test_a_closed_chat_and_an_expired_one(webhook, project, shared, editor):
    silent = Session.objects.create(
        project=project, creator=editor, last_activity_at=timezone.now() - timedelta(days=400)
    )
    update_session(shared, title="Cutover", status="closed")
    update_session(shared, title="Cutover in May")
    assert close_idle_sessions() == 1
    assert stored_events() == [
        ("session.closed", {"session": str(shared.pk), "reason": "closed"}),
        ("session.closed", {"session": str(silent.pk), "reason": "expired"}),
    ]


def test_changes_in_a_private_chat_send_no_event(webhook, private, editor):
    message = post_message(private, "My salary is 93,500 euros.", author=editor)
    edits.edit(message, "My salary is 95,300 euros.", editor)
    edits.delete(message)
    update_session(private, status="closed")
    assert stored_events() == []


def test_a_fact_that_is_added_changed_ended_and_hidden(webhook, project, owner):
    member = project.memberships.get(user=owner)
    start = timezone.now() - timedelta(days=9)
    fact = create_fact(member, Statement("Billing", "is owned by", "Platform", start))[0]
    fact = update.edit(fact, Statement("Billing", "is owned by", "Payments", start), owner)
    fact = update.close(fact, timezone.now(), owner)
    fact = update.hide(fact, owner)
    update.unhide(fact, owner)
    assert [(event, data["verb"]) for event, data in stored_events()] == [
        ("fact.changed", verb) for verb in ("recorded", "edited", "closed", "hidden", "shown")
    ]
    assert {data["fact"] for _event, data in stored_events()} == {str(fact.pk)}


def test_facts_of_a_summary_are_reported_together(webhook, project, entry):
    Delivery.objects.all().delete()
    ids = [new_id(), new_id()]
    act = record_activity(project.pk, ActivityVerb.RECORDED, entry_id=entry.pk, related=ids)
    [(event, data)] = stored_events()
    assert (event, data["activity"], data["fact"], data["count"]) == (
        "fact.changed",
        str(act.pk),
        None,
        2,
    )


def test_an_activity_about_a_message_is_no_change_of_a_fact(webhook, project, shared, editor):
    message = post_message(shared, "Hello", author=editor)
    Delivery.objects.all().delete()
    for verb in (ActivityVerb.EDITED, ActivityVerb.HIDDEN, ActivityVerb.APPROVED):
        record_activity(project.pk, verb, message_id=message.pk)
    assert stored_events() == []


def test_a_rolled_back_change_sends_no_event(webhook, shared, editor):
    with pytest.raises(RuntimeError), transaction.atomic():
        post_message(shared, "Hello", author=editor)
        assert len(stored_events()) == 1
        raise RuntimeError
    assert stored_events() == []


def test_an_import_sends_one_event(webhook, project, owner):
    line = '{"session": "a", "role": "user", "content": "%s", "created_at": "2026-03-01T09:00Z"}\n'
    file = ContentFile((line % "One" + line % "Two").encode(), "talk.jsonl")
    upload = jobs.create_import(project, owner, file)
    assert jobs.run_import(upload.pk)
    assert stored_events() == [
        (
            "import.done",
            {
                "import": str(upload.pk),
                "state": "done",
                "sessions": 1,
                "imported": 2,
                "skipped": 0,
            },
        )
    ]


@pytest.mark.parametrize(
    ("verb", "event"),
    [
        (ActivityVerb.SUMMARISED, "entry.written"),
        (ActivityVerb.REWRITTEN, "entry.written"),
        (ActivityVerb.ROLLED_UP, "entry.rolled_up"),
        (ActivityVerb.PROPOSED, "memory.proposed"),
    ],
)
def test_memory_sends_its_events(webhook, project, entry, chat, verb, event):
    Delivery.objects.all().delete()
    act = record_activity(
        project.pk,
        verb,
        entry_id=entry.pk,
        session_id=chat.pk,
        granularity="conversation",
        period_key="2026-03-12",
        count=2,
    )
    assert stored_events() == [
        (
            event,
            {
                "activity": str(act.pk),
                "verb": str(verb),
                "entry": str(entry.pk),
                "fact": None,
                "session": str(chat.pk),
                "message": None,
                "granularity": "conversation",
                "period_key": "2026-03-12",
                "count": 2,
            },
        )
    ]


def test_an_entry_that_somebody_edits_or_sends_to_review(webhook, entry, owner):
    Delivery.objects.all().delete()
    entry_operations.edit(entry, "- The replica stays eight days", owner)
    entry_operations.send_to_review(entry.project.entries.filter(pk=entry.pk), ReviewReason.PRIVATE)
    assert [(event, data["verb"]) for event, data in stored_events()] == [
        ("entry.written", "edited"),
        ("memory.proposed", "proposed"),
    ]
    assert {data["entry"] for _, data in stored_events()} == {str(entry.pk)}


def test_a_private_session_is_not_named(webhook, project, private, editor):
    message = post_message(private, "My salary is 93,500 euros.", author=editor)
    record_activity(
        project.pk, ActivityVerb.SUMMARISED, entry_id=message.pk, session_id=private.pk, count=1
    )
    forget(project, ForgetScope(message=message.pk), editor)
    for _event, data in stored_events():
        assert (data["session"], data["message"]) == (None, None)
    assert [event for event, _ in stored_events()] == ["entry.written", "memory.forgotten"]


def test_a_forgetting_leaves_ids_alone(webhook, project, shared, owner, editor):
    text = "The passphrase is Holunderblüte."
    message = post_message(shared, text, author=editor)
    post_message(shared, "Something else that stays.", author=editor)
    preview(project, ForgetScope(message=message.pk), owner)
    assert len(stored_events()) == 2
    forget(project, ForgetScope(message=message.pk), owner)
    event, data = stored_events()[-1]
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    assert event == "memory.forgotten"
    assert (data["activity"], data["message"]) == (str(act.pk), str(message.pk))
    assert data["count"] == 1
    rows = json.dumps(list(Delivery.objects.values()), default=str)
    assert "Holunder" not in rows and "passphrase" not in rows


def test_only_subscribed_webhooks_get_events(project, owner, inside, shared, editor):
    loud = webhooks.register(project, f"{inside.url}/a", ["message.posted"], owner)
    webhooks.register(project, f"{inside.url}/b", ["import.done"], owner)
    off = webhooks.register(project, f"{inside.url}/c", ["message.posted"], owner)
    webhooks.switch_off(off, "owner")
    post_message(shared, "Hello", author=editor)
    assert [delivery.webhook_id for delivery in Delivery.objects.all()] == [loud.pk]


def test_the_webhook_of_another_project_gets_nothing(webhook, owner):
    from projects.services import create_project

    other = create_project(owner, name="Support")
    session = Session.objects.create(project=other, creator=owner, visibility=Visibility.PROJECT)
    post_message(session, "Hello", author=owner)
    assert stored_events() == []


def test_without_webhooks_a_message_costs_one_query_more(shared, editor, monkeypatch):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured_queries:
            post_message(shared, "Hello", author=editor)
        return len(captured_queries)

    queries()
    with_the_question = queries()
    monkeypatch.setattr("memory.webhook_events.emit", lambda *_: None)
    assert with_the_question - queries() == 1


def test_many_webhooks_cost_as_many_queries_as_one(
    project, owner, inside, shared, editor, django_assert_num_queries
):
    def register(count: int) -> None:
        for number in range(count):
            webhooks.register(project, f"{inside.url}/{number}", ["message.posted"], owner)

    register(1)
    post_message(shared, "Hello", author=editor)
    with CaptureQueriesContext(connection) as queries:
        post_message(shared, "Hello", author=editor)
    register(9)
    with django_assert_num_queries(len(queries)):
        post_message(shared, "Hello", author=editor)
    assert Delivery.objects.count() == 2 + 10


@pytest.mark.django_db(transaction=True)
def test_workers_are_woken_once_it_is_committed(webhook, shared, editor, sent):
    with transaction.atomic():
        post_message(shared, "Hello", author=editor)
        post_message(shared, "Hello again", author=editor)
        assert sent == []
    assert sent == ["memory.tasks.run_deliveries"]


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_does_not_stop_the_chat(webhook, shared, editor, monkeypatch):
    from memory import tasks, wakeups

    def away(**_options) -> None:
        raise OSError("The broker is away")

    monkeypatch.setattr(wakeups, "_broker_retry_at", 0.0)
    monkeypatch.setattr(tasks.run_deliveries, "apply_async", away)
    post_message(shared, "Hello", author=editor)
    assert len(stored_events()) == 1
    monkeypatch.setattr(wakeups, "_broker_retry_at", 0.0)


def test_they_go_with_their_project_and_not_with_who_made_them(webhook, project, owner, shared):
    from projects.services import delete_project

    post_message(shared, "Hello", author=owner)
    assert Delivery.objects.exists()
    delete_project(project)
    assert not Delivery.objects.exists()
    assert not type(webhook).objects.exists()
