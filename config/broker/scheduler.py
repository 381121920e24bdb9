"""Celery beat's scheduler for several beat processes, of which one is the leader.

The tasks and their periods are rows in the database (see `config/beat_schedule.py`). Only the
leader sends due tasks. Leadership is a lease in the database. The lease and the schedule use the
database's clock: a beat on a machine with a wrong clock neither sends tasks early nor records runs
in the future.
"""

import logging
import os
import socket
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.models.functions import Now
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from config.health import heartbeats
from config.models import Leadership

log = logging.getLogger(__name__)

ROLE = "beat"
# The lease is renewed at each tick. Another beat takes over when it expires.
LEASE = timedelta(seconds=8)
MAX_TICK_S = 2.0
HEARTBEAT_S = 20.0


class DatabaseClock:
    """The database's time, extrapolated from the last query."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, moment: datetime) -> None:
        self._moment, self._set_at = moment, time.monotonic()

    def now(self) -> datetime:
        return self._moment + timedelta(seconds=time.monotonic() - self._set_at)


clock = DatabaseClock()


class DatabaseClockEntry(ModelEntry):
    """A periodic task that is due by the database's clock."""

    def __init__(self, model, app=None) -> None:
        super().__init__(model, app=app)
        zone = self.schedule.tz
        self.schedule.nowfun = lambda: clock.now().astimezone(zone)
        # A last run in the future happened before the clock was set back.
        self.last_run_at: datetime = min(self.last_run_at, clock.now())

    def _default_now(self) -> datetime:
        return clock.now()


class LeasedScheduler(DatabaseScheduler):
    """Scheduler that sends tasks only while this process is the leader."""

    Entry = DatabaseClockEntry

    def __init__(self, *args, **kwargs) -> None:
        self.holder = uuid4()
        self.is_leader = False
        self._heartbeat_at = float("-inf")
        super().__init__(*args, **kwargs)
        self.max_interval: float = min(self.max_interval, MAX_TICK_S)

    def tick(self, *args, **kwargs) -> float:
        """Send at most one due task, and return the seconds until the next tick."""
        if not self.renew_leadership():
            return self.max_interval
        return super().tick(*args, **kwargs)

    def apply_async(self, entry, producer=None, advance=True, **kwargs):
        seconds = entry.options.get("expires")
        if isinstance(seconds, int | float):
            # Celery would add them to this machine's time.
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
        """Return whether the database's clock was set back."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            [now] = cursor.fetchone()
        went_back = now < clock.now() - LEASE
        clock.set(now)
        return went_back

    def reload_schedule(self) -> None:
        """Read the last runs from the database. Those in memory are outdated."""
        self._dirty.clear()
        self._schedule = self.all_as_schedule()
        self._heap: list = []
        self._heap_invalidated = True
