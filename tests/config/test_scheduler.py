"""Several beats, of which one leads, by the database's clock."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.db.models.functions import Now
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config.broker import scheduler
from config.broker.scheduler import LeasedScheduler
from config.celery import app
from config.models import Heartbeat, Leadership

pytestmark = pytest.mark.django_db(transaction=True)


class RecordingScheduler(LeasedScheduler):
    """Records the tasks instead of sending them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, datetime]] = []
        super().__init__(app=app)

    def apply_entry(self, entry, producer=None) -> None:
        self.sent.append(entry.name)
        self.sync()

    def send_due(self) -> None:
        """Send all tasks that are due now."""
        while self.tick() == 0:
            pass

    producer = None


@pytest.fixture
def minutely(empty_schedule) -> PeriodicTask:
    """The only task: due at once, and then every minute."""
    if (left := 60 - time.time() % 60) < 5:
        # It would be due twice in the test.
        time.sleep(left)
    every_minute, _ = IntervalSchedule.objects.get_or_create(every=1, period="minutes")
    return PeriodicTask.objects.create(
        name="Cycle",
        task="memory.tasks.run_cycle",
        interval=every_minute,
        last_run_at=datetime.now(UTC) - timedelta(hours=1),
    )


@pytest.fixture
def two(minutely) -> tuple[RecordingScheduler, RecordingScheduler]:
    beats = RecordingScheduler(), RecordingScheduler()
    # Celery's own.
    PeriodicTask.objects.exclude(pk=minutely.pk).delete()
    return beats


def expire_lease() -> None:
    Leadership.objects.update(until=Now() - timedelta(seconds=1))


def test_one_of_two_beats_sends(two):
    first, second = two
    for item in (first, second, first, second):
        item.send_due()
    assert (first.sent, second.sent) == (["Cycle"], [])
    assert Heartbeat.objects.filter(part="beat").exists()


def test_another_beat_leads_after_the_lease_expires(two, minutely):
    first, second = two
    first.send_due()
    expire_lease()
    second.send_due()
    # It was sent a moment ago, by the other.
    assert second.sent == []
    PeriodicTask.objects.update(last_run_at=Now() - timedelta(hours=1))
    first.send_due()
    assert first.sent == ["Cycle"]
    expire_lease()
    second.send_due()
    assert second.is_leader


def test_another_beat_leads_at_once_when_the_leader_stops(two):
    first, second = two
    first.send_due()
    assert not second.renew_leadership()
    first.close()
    assert second.renew_leadership()


def test_a_former_leader_that_stops_does_not_end_the_new_lease(two):
    first, second = two
    first.send_due()
    expire_lease()
    second.send_due()
    first.close()
    assert second.renew_leadership()


@pytest.mark.parametrize("off", [timedelta(hours=3), timedelta(hours=-3)])
def test_a_beat_with_a_wrong_clock_uses_the_databases(two, minutely, monkeypatch, off):
    first, second = two

    with monkeypatch.context() as patches:
        # What celery-beat goes by.
        patches.setattr("django.utils.timezone.now", lambda: datetime.now(UTC) + off)
        first.send_due()
        first.send_due()
    assert first.sent == ["Cycle"]
    minutely.refresh_from_db()
    assert abs(minutely.last_run_at - datetime.now(UTC)) < timedelta(seconds=20)
    expire_lease()
    PeriodicTask.objects.update(last_run_at=Now() - timedelta(seconds=61))
    second.send_due()
    assert second.sent == ["Cycle"]


def test_a_lease_from_before_the_databases_clock_was_set_back_is_void(two):
    first, second = two
    first.send_due()
    Leadership.objects.update(until=Now() + timedelta(hours=2))
    assert second.renew_leadership()


def test_due_tasks_are_sent_after_the_databases_clock_was_set_back(two, minutely):
    first, _ = two
    later = datetime.now(UTC) + timedelta(hours=2)
    PeriodicTask.objects.update(last_run_at=later)
    first.renew_leadership()
    scheduler.clock.set(later)
    # The schedule as it was made when it was later.
    first.reload_schedule()
    first.populate_heap()
    assert first.tick() <= scheduler.MAX_TICK_S
    entry = first._heap[0].entry
    assert entry.is_due().next <= 61
    assert first._heap[0].time - datetime.now(UTC).timestamp() <= 61


def test_messages_expire_by_the_databases_clock(two, minutely):
    sent = {}
    first, _ = two
    PeriodicTask.objects.update(expire_seconds=120)
    first.renew_leadership()
    first.send_task = lambda *args, **options: sent.update(options)
    entry = scheduler.DatabaseClockEntry(PeriodicTask.objects.get(), app=app)
    entry.task = "not.known"
    first.apply_async(entry, advance=False)
    assert abs(sent["expires"] - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=9)


def test_a_beat_without_its_database_waits(two, monkeypatch):
    first, _ = two
    first.send_due()

    def away():
        raise OperationalError("The server closed the connection")

    monkeypatch.setattr(first, "claim_lease", away)
    assert first.tick() == scheduler.MAX_TICK_S
    monkeypatch.undo()
    assert first.renew_leadership()


@pytest.mark.parametrize(("period", "after"), [(20, 1), (60, 1), (60, 59), (3_600, 3_599)])
def test_tasks_with_one_period_are_due_together(minutely, period, after):
    """At whole multiples of the period, whenever they ran last."""
    boundary = datetime(2026, 1, 5, 12, tzinfo=UTC)
    scheduler.clock.set(boundary - timedelta(seconds=1))
    minutely.interval = IntervalSchedule.objects.create(every=period, period="seconds")
    minutely.last_run_at = boundary - timedelta(seconds=after)
    entry = scheduler.DatabaseClockEntry(minutely, app=app)
    is_due, seconds = entry.is_due()
    # The clock goes on.
    assert not is_due and 0.5 < seconds <= 1
    scheduler.clock.set(boundary)
    assert entry.is_due().is_due


def test_each_beat_updates_its_file_whether_or_not_it_leads(two, settings, tmp_path):
    for number, beat in enumerate(two):
        settings.HEARTBEAT_FILE = tmp_path / f"{number}"
        beat.tick()
        assert settings.HEARTBEAT_FILE.exists()
    assert [beat.is_leader for beat in two] == [True, False]
