"""Scheduler of Celery beat for several beat processes. One of them is the leader.

Tasks and periods are rows in the database (see `config/beat_schedule.py`). Only the leader sends
due tasks. Leadership is a lease in the database. Lease and schedule use the database clock, so that
a beat on a machine with a wrong clock neither sends tasks early nor records runs in the future.
"""

import logging
import os
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from celery import bootsteps
from celery.schedules import schedule
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.models.functions import Now
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from config.health import heartbeats
from config.models import Leadership
from config.runtime.threads import close_unused_connections
from projects.core.database import fetch

log = logging.getLogger(__name__)

ROLE = "beat"
# The duration of the lease, which each tick renews. When it expires, another beat takes over.
LEASE = timedelta(seconds=30)
MAX_TICK_S = 10.0
HEARTBEAT_S = 20.0
EPOCH = datetime.fromtimestamp(0, UTC)


class DatabaseClock:
    """The time of the database, extrapolated from the last query."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, moment: datetime) -> None:
        self._moment, self._set_at = moment, time.monotonic()

    def now(self) -> datetime:
        return self._moment + timedelta(seconds=time.monotonic() - self._set_at)


clock = DatabaseClock()


class DatabaseClockEntry(ModelEntry):
    """A periodic task that becomes due by the database clock."""

    def __init__(self, model, app=None) -> None:
        super().__init__(model, app=app)
        zone = self.schedule.tz
        self.schedule.nowfun = lambda: clock.now().astimezone(zone)
        if type(self.schedule) is schedule:
            self.schedule.remaining_estimate = self._remaining
        # A last run in the future was recorded before the clock was set back.
        self.last_run_at: datetime = min(self.last_run_at, clock.now())

    def _remaining(self, last_run_at: datetime) -> timedelta:
        """Return the time until the next multiple of the period since the epoch.

        Tasks with the same period are then due together, so that an idle machine wakes up only
        once.
        """
        period = self.schedule.run_every
        return last_run_at + period - (last_run_at - EPOCH) % period - clock.now()

    def _default_now(self) -> datetime:
        return clock.now()


class LeasedScheduler(DatabaseScheduler):
    """A scheduler that sends tasks only while this process is the leader."""

    Entry = DatabaseClockEntry

    def __init__(self, *args, **kwargs) -> None:
        self.holder = uuid4()
        self.is_leader = False
        self._heartbeat_at = float("-inf")
        super().__init__(*args, **kwargs)
        # Replaces the five seconds of django-celery-beat.
        self.max_interval: float = min(kwargs.get("max_interval") or MAX_TICK_S, MAX_TICK_S)

    def tick(self, *args, **kwargs) -> float:
        """Send at most one due task. Return the number of seconds until the next tick."""
        heartbeats.touch()
        if not self.renew_leadership():
            return self.max_interval
        return super().tick(*args, **kwargs)

    def apply_async(self, entry, producer=None, advance=True, **kwargs):
        seconds = entry.options.get("expires")
        if isinstance(seconds, int | float):
            # As a time of the database clock. Celery would add the seconds to this machine's time.
            entry.options["expires"] = clock.now() + timedelta(seconds=seconds)
        return super().apply_async(entry, producer=producer, advance=advance, **kwargs)

    def close(self) -> None:
        super().close()
        if self.is_leader:
            self.is_leader = False
            Leadership.objects.held_by(self.holder).update(holder=None, until=None)

    def renew_leadership(self) -> bool:
        """Claim or renew the lease, and set the clock. Return whether this process leads."""
        try:
            close_old_connections()
            is_leader = self.claim_lease()
            went_back = self._set_clock()
            if is_leader and (went_back or not self.is_leader):
                self.reload_schedule()
            if is_leader and time.monotonic() - self._heartbeat_at > HEARTBEAT_S:
                self._heartbeat_at = time.monotonic()
                heartbeats.record([ROLE])
        except (DatabaseError, InterfaceError) as error:
            log.warning("beat_database_error cause=%r", error)
            is_leader = False
        if is_leader != self.is_leader:
            log.info("beat_leadership holder=%s leads=%s", self.holder, is_leader)
        self.is_leader = is_leader
        return is_leader

    def claim_lease(self) -> bool:
        rows = Leadership.objects.filter(role=ROLE)
        values = {"holder": self.holder, "name": f"{socket.gethostname()}:{os.getpid()}"}
        if rows.claimable_by(self.holder, LEASE).update(until=Now() + LEASE, **values):
            return True
        if rows.exists():
            return False
        Leadership.objects.bulk_create([Leadership(role=ROLE)], ignore_conflicts=True)
        return self.claim_lease()

    def _set_clock(self) -> bool:
        """Read the database clock. Return whether it was set back by more than LEASE."""
        [[now]] = fetch("SELECT clock_timestamp()")
        went_back = now < clock.now() - LEASE
        clock.set(now)
        return went_back

    def reload_schedule(self) -> None:
        """Read the times of the last runs from the database; those in memory are outdated."""
        self._dirty.clear()
        self._schedule = self.all_as_schedule()
        self._heap: list = []
        self._heap_invalidated = True


class BeatStep(bootsteps.StartStopStep):
    """Celery bootstep that runs beat in a thread of a worker process."""

    def __init__(self, worker: Any, **kwargs: object) -> None:
        super().__init__(worker, **kwargs)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(worker.app,), name="beat")

    def start(self, worker: Any) -> None:
        self._thread.daemon = True
        self._thread.start()

    def stop(self, worker: Any) -> None:
        self._stopped.set()
        # Wait for its end, so that it releases the lease and another beat can take over at once.
        self._thread.join(timeout=MAX_TICK_S)

    def _run(self, app: Any) -> None:
        while not self._stopped.is_set():
            try:
                self._tick_until_stopped(app)
            except Exception:
                # Any error would end the thread, and with it the schedule of this process.
                log.exception("beat_failed")
                self._stopped.wait(MAX_TICK_S)
            finally:
                connection.close()

    def _tick_until_stopped(self, app: Any) -> None:
        scheduler = LeasedScheduler(app=app)
        while True:
            seconds = scheduler.tick()
            if seconds > MAX_TICK_S / 2:
                connection.close()
                close_unused_connections()
            if self._stopped.wait(seconds):
                break
        scheduler.close()
