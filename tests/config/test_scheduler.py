"""Several beats: one leads by the database's clock, another follows."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.db.models.functions import Now
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config import beat
from config.beat import LeasedScheduler
from config.celery import app
from config.models import Heartbeat, Leadership

pytestmark = pytest.mark.django_db(transaction=True)


class Recording(LeasedScheduler):
    """Notes what it would have sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, datetime]] = []
        super().__init__(app=app)

    def apply_entry(self, entry, producer=None) -> None:
        self.sent.append(entry.name)
        self.sync()

    def turn(self) -> None:
        """All that is due now."""
        while self.tick() == 0:
            pass

    producer = None


@pytest.fixture
def minutely(empty_schedule) -> PeriodicTask:
    """The only task: due at once, and then every minute."""
    every_minute, _ = IntervalSchedule.objects.get_or_create(every=1, period="minutes")
    return PeriodicTask.objects.create(
        name="Cycle",
        task="memory.tasks.run_cycle",
        interval=every_minute,
        last_run_at=datetime.now(UTC) - timedelta(hours=1),
    )


@pytest.fixture
def two(minutely) -> tuple[Recording, Recording]:
    beats = Recording(), Recording()
    # Celery's own.
    PeriodicTask.objects.exclude(pk=minutely.pk).delete()
    return beats


def let_the_lead_run_out() -> None:
    Leadership.objects.update(until=Now() - timedelta(seconds=1))


def test_one_of_two_beats_sends(two):
    first, second = two
    for one in (first, second, first, second):
        one.turn()
    assert (first.sent, second.sent) == (["Cycle"], [])
    assert Heartbeat.objects.filter(part="beat").exists()


def test_another_follows_when_the_leader_is_silent(two, minutely):
    first, second = two
    first.turn()
    let_the_lead_run_out()
    second.turn()
    # It was sent a moment ago, by the other.
    assert second.sent == []
    PeriodicTask.objects.update(last_run_at=Now() - timedelta(hours=1))
    first.turn()
    assert first.sent == ["Cycle"]
    let_the_lead_run_out()
    second.turn()
    assert second.leads


def test_another_follows_at_once_when_the_leader_stops(two):
    first, second = two
    first.turn()
    assert not second._lead()
    first.close()
    assert second._lead()


def test_a_beat_that_was_overtaken_takes_nothing_back_by_stopping(two):
    first, second = two
    first.turn()
    let_the_lead_run_out()
    second.turn()
    first.close()
    assert second._lead()


@pytest.mark.parametrize("off", [timedelta(hours=3), timedelta(hours=-3)])
def test_a_beat_whose_clock_is_wrong_goes_by_the_databases(two, minutely, monkeypatch, off):
    first, second = two

    with monkeypatch.context() as patches:
        # What celery-beat goes by.
        patches.setattr("django.utils.timezone.now", lambda: datetime.now(UTC) + off)
        first.turn()
        first.turn()
    assert first.sent == ["Cycle"]
    minutely.refresh_from_db()
    assert abs(minutely.last_run_at - datetime.now(UTC)) < timedelta(seconds=20)
    let_the_lead_run_out()
    PeriodicTask.objects.update(last_run_at=Now() - timedelta(seconds=61))
    second.turn()
    assert second.sent == ["Cycle"]


def test_a_lead_taken_before_the_databases_clock_was_set_back_is_nobodys(two):
    first, second = two
    first.turn()
    Leadership.objects.update(until=Now() + timedelta(hours=2))
    assert second._lead()


def test_what_is_due_is_sent_after_the_databases_clock_was_set_back(two, minutely):
    first, _ = two
    later = datetime.now(UTC) + timedelta(hours=2)
    PeriodicTask.objects.update(last_run_at=later)
    first._lead()
    beat.clock.set(later)
    # The schedule as it was made when it was later.
    first._take_over()
    first.populate_heap()
    assert first.tick() <= beat.LOOK
    entry = first._heap[0].entry
    assert entry.is_due().next <= 61
    assert first._heap[0].time - datetime.now(UTC).timestamp() <= 61


def test_messages_expire_by_the_databases_clock(two, minutely):
    sent = {}
    first, _ = two
    PeriodicTask.objects.update(expire_seconds=120)
    first._lead()
    first.send_task = lambda *args, **options: sent.update(options)
    entry = beat.Entry(PeriodicTask.objects.get(), app=app)
    entry.task = "not.known"
    first.apply_async(entry, advance=False)
    assert abs(sent["expires"] - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=9)


def test_a_beat_without_its_database_waits(two, monkeypatch):
    first, _ = two
    first.turn()

    def away():
        raise OperationalError("The server closed the connection")

    monkeypatch.setattr(first, "_claim", away)
    assert first.tick() == beat.LOOK
    monkeypatch.undo()
    assert first._lead()
