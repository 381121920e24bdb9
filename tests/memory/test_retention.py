"""Retention: expired sessions and everything derived from them are forgotten."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from chat.conversations import edits, notes
from chat.conversations.messages import draft, post_messages
from chat.models import Message, Session
from memory.forgetting import retention
from memory.layers import cycle
from memory.layers.conversations import summarise
from memory.models import Activity, ActivityVerb, Chunk, Entry, Tombstone
from memory.recall.indexing import catch_up
from memory.tasks import apply_retention
from tests.html import compact

pytestmark = pytest.mark.django_db

PROJECT = "/api/v1/projects/billing/"
SETTINGS = "/projects/billing/settings/"


@pytest.fixture
def say(project, owner, scripted):
    """A chat that was silent for so many days, summarised and found by recall."""
    birds = ("nightingale", "wren")
    scripted.default = lambda request: f"- Of {[bird for bird in birds if bird in str(request)]}."

    def add_session(text: str, days: float) -> Session:
        at = timezone.now() - timedelta(days=days)
        session = Session.objects.create(project=project, creator=owner, created_at=at)
        post_messages(session, [draft(text, author=owner, created_at=at)])
        Session.objects.filter(pk=session.pk).update(last_activity_at=at)
        summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
        catch_up()
        return Session.objects.get(pk=session.pk)

    return add_session


def keep(project, days: int | None) -> None:
    project.keep_days = days
    project.save(update_fields=["keep_days"])


def left() -> set[str]:
    return set(Message.objects.exclude(text="").values_list("text", flat=True))


def test_a_chat_that_cannot_be_forgotten_does_not_stop_the_others(project, say, monkeypatch):
    failing = say("The nightingale sings.", 32)
    say("The wren goes.", 31)
    keep(project, 30)
    forget = retention.forget

    def fail(project, scope, **kwargs):
        if scope.session == failing.pk:
            raise ValueError
        return forget(project, scope, **kwargs)

    monkeypatch.setattr(retention, "forget", fail)
    assert retention.forget_expired()
    assert left() == {"The nightingale sings."}


def test_expired_messages_go_from_every_layer(project, say):
    say("The nightingale sings.", 31)
    say("The wren stays.", 29)
    keep(project, 30)
    assert retention.forget_expired()
    assert left() == {"The wren stays."}
    for model, column in ((Entry, "summary"), (Chunk, "text")):
        assert not model.objects.filter(**{f"{column}__icontains": "nightingale"}).exists()
        assert model.objects.filter(**{f"{column}__icontains": "wren"}).exists()


def test_its_digest_is_rewritten_from_the_remaining_sources(project, say):
    project.bank_max_tokens = 50
    project.save()
    at = timezone.now() - timedelta(days=40)
    say("The nightingale sings at length, " + "and sings, " * 40, 40)
    say("The wren stays at length, " + "and stays, " * 40, 40)
    cycle.run(datetime.now(UTC), project)
    digest = Entry.objects.get(granularity="day", period_key=f"{at:%Y-%m-%d}")
    Session.objects.filter(messages__text__contains="wren").update(last_activity_at=timezone.now())
    keep(project, 30)
    retention.forget_expired()
    digest.refresh_from_db()
    assert digest.withheld and digest.summary == ""


def test_by_default_chats_are_kept_for_ever(project, say):
    say("The nightingale sings.", 30_000)
    assert retention.forget_expired()
    assert left() == {"The nightingale sings."}


def test_a_chat_with_a_pinned_summary_keeps_what_it_shares_with_its_forks(project, owner, say):
    summarised = say("A pinned summary.", 50)
    edits.fork(summarised.messages.get(), owner)
    Session.objects.update(last_activity_at=timezone.now() - timedelta(days=50))
    Entry.objects.filter(session=summarised).update(pinned=True)
    keep(project, 30)
    retention.forget_expired()
    assert summarised.messages.get().text == "A pinned summary."


def test_pinned_entries_and_notes_stay(project, owner, say):
    chat, summarised = say("A pinned chat.", 50), say("A pinned summary.", 50)
    Session.objects.filter(pk=chat.pk).update(pinned=True)
    Entry.objects.filter(session=summarised).update(pinned=True)
    notes.add_note(project, owner, "A note.")
    Session.objects.notes().update(last_activity_at=timezone.now() - timedelta(days=50))
    keep(project, 30)
    retention.forget_expired()
    assert left() == {"A pinned chat.", "A pinned summary.", "A note."}


@pytest.mark.parametrize("spoken", ["origin", "fork", "other fork"])
def test_a_chat_and_its_forks_go_when_the_last_of_them_is_over(project, owner, say, spoken):
    origin = say("How it began.", 50)
    head = origin.messages.get()
    sessions_by_name = {"origin": origin, "fork": edits.fork(head, owner)}
    sessions_by_name["other fork"] = edits.fork(head, owner)
    Session.objects.update(last_activity_at=timezone.now() - timedelta(days=50))
    Session.objects.filter(pk=sessions_by_name[spoken].pk).update(last_activity_at=timezone.now())
    keep(project, 30)
    retention.forget_expired()
    assert Session.objects.count() == 3
    assert Message.objects.filter(text="How it began.").count() == 3

    Session.objects.update(last_activity_at=timezone.now() - timedelta(days=50))
    retention.forget_expired()
    assert not Session.objects.exists()


def test_it_is_on_the_record_with_its_reason_and_leaves_tombstones(project, say):
    deleted_session = say("The nightingale sings.", 31)
    keep(project, 30)
    retention.forget_expired()
    act = Activity.objects.get(verb=ActivityVerb.FORGOTTEN)
    assert (act.by, act.session_id, act.reason) == (None, deleted_session.pk, retention.REASON)
    assert Tombstone.objects.filter(subject=deleted_session.pk).exists()


def test_a_run_out_of_time_continues_later(project, say):
    say("The nightingale sings.", 31)
    keep(project, 30)
    assert not retention.forget_expired(seconds=-1)
    assert left()
    assert retention.forget_expired(seconds=60)
    assert not left()


def test_one_in_which_somebody_spoke_meanwhile_stays(project, say, monkeypatch):
    session = say("The nightingale sings.", 31)
    keep(project, 30)
    expired = list(retention.expired_sessions().values_list("pk", "project"))
    Session.objects.update(last_activity_at=timezone.now())
    retention.forget_session_if_expired(*expired[0])
    assert Session.objects.get() == session and left()


def test_the_beat_looks_every_hour(project, say):
    task = PeriodicTask.objects.get(task="memory.tasks.let_go")
    assert (task.interval.every, task.interval.period) == (1, "hours")
    say("The nightingale sings.", 31)
    keep(project, 30)
    apply_retention()
    assert not left()


def test_owners_see_what_would_go_before_they_save(project, client, owner, say):
    say("One.", 31)
    say("Two.", 400)
    client.force_login(owner)
    page = client.get(SETTINGS).content.decode()
    assert "after 30 days: 2, after 90 days: 1, after 365 days: 1." in compact(page)


def test_members_see_the_retention_period(project, client, viewer):
    client.force_login(viewer)
    assert "kept forever" in client.get(SETTINGS).content.decode()
    keep(project, 30)
    assert "deleted 30 days after the last message" in client.get(SETTINGS).content.decode()


def test_the_api_sets_it_and_refuses_nonsense(api, owner, editor, project):
    assert api(owner).get(PROJECT).json()["keep_days"] is None
    answer = api(owner).patch(PROJECT, {"keep_days": 90}, format="json")
    assert answer.json()["keep_days"] == 90
    for wrong in (0, -1, 40_000, "soon"):
        answer = api(owner).patch(PROJECT, {"keep_days": wrong}, format="json")
        assert answer.status_code == 400 and "keep_days" in answer.json()
    assert api(editor).patch(PROJECT, {"keep_days": 1}, format="json").status_code == 404
