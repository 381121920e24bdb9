"""Several beats, of which one leads: it alone sends what is due, and another follows when it dies.

The lead is a lease in the database, and goes by the database's clock. So does the schedule: a beat
whose machine has another time of day neither runs ahead nor leaves behind runs of tomorrow.
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

from config.models import Leadership
from config.signs import note

log = logging.getLogger(__name__)

ROLE = "beat"
# The lead is renewed at each look, and another beat has it when it was not for so long.
LEASE = timedelta(seconds=8)
# Seconds between two looks, at most.
LOOK = 2.0
# Seconds between two signs of life.
SIGN = 20.0


class DatabaseClock:
    """The database's time of day, carried on from the last look at it."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, moment: datetime) -> None:
        self._moment, self._at = moment, time.monotonic()

    def now(self) -> datetime:
        return self._moment + timedelta(seconds=time.monotonic() - self._at)


clock = DatabaseClock()


class Entry(ModelEntry):
    """A periodic task that is due by the database's clock."""

    def __init__(self, model, app=None) -> None:
        super().__init__(model, app=app)
        zone = self.schedule.tz
        self.schedule.nowfun = lambda: clock.now().astimezone(zone)
        # What ran later than now ran before the clock was set back.
        self.last_run_at: datetime = min(self.last_run_at, clock.now())

    def _default_now(self) -> datetime:
        return clock.now()


class LeasedScheduler(DatabaseScheduler):
    """Celery beat's scheduler, idle unless it leads."""

    Entry = Entry

    def __init__(self, *args, **kwargs) -> None:
        self.holder = uuid4()
        self.leads = False
        self._signed_at = float("-inf")
        super().__init__(*args, **kwargs)
        self.max_interval: float = min(self.max_interval, LOOK)

    def tick(self, *args, **kwargs) -> float:
        """Sends at most one task that is due; returns the seconds until the next look."""
        if not self._lead():
            return self.max_interval
        return super().tick(*args, **kwargs)

    def apply_async(self, entry, producer=None, advance=True, **kwargs):
        seconds = entry.options.get("expires")
        if isinstance(seconds, int | float):
            # Celery would count them from this machine's time of day.
            entry.options["expires"] = clock.now() + timedelta(seconds=seconds)
        return super().apply_async(entry, producer=producer, advance=advance, **kwargs)

    def close(self) -> None:
        super().close()
        if self.leads:
            self.leads = False
            Leadership.objects.held_by(self.holder).update(holder=None, until=None)

    def _lead(self) -> bool:
        """Claims or renews the lead, and sets the clock."""
        try:
            close_old_connections()
            leads = self._claim()
            went_back = self._read_clock()
            if leads and (went_back or not self.leads):
                self._take_over()
            if leads and time.monotonic() - self._signed_at > SIGN:
                self._signed_at = time.monotonic()
                note([ROLE])
        except (DatabaseError, InterfaceError) as error:
            log.warning("beat_without_database cause=%r", error)
            leads = False
        if leads != self.leads:
            log.info("beat_leads holder=%s leads=%s", self.holder, leads)
        self.leads = leads
        return leads

    def _claim(self) -> bool:
        rows = Leadership.objects.filter(role=ROLE)
        ours = {"holder": self.holder, "name": f"{socket.gethostname()}:{os.getpid()}"}
        if rows.claimable_by(self.holder, LEASE).update(until=Now() + LEASE, **ours):
            return True
        if rows.exists():
            return False
        Leadership.objects.bulk_create([Leadership(role=ROLE)], ignore_conflicts=True)
        return self._claim()

    def _read_clock(self) -> bool:
        """Whether it is earlier than it should be."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            [now] = cursor.fetchone()
        went_back = now < clock.now() - LEASE
        clock.set(now)
        return went_back

    def _take_over(self) -> None:
        """What was sent last stands in the database; what this beat remembers is of another day."""
        self._dirty.clear()
        self._schedule = self.all_as_schedule()
        self._heap: list = []
        self._heap_invalidated = True
