"""Work that one worker at a time may do, and that is tried again later when it fails."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.calls import spent_today
from projects.models import OfProject

# A lease outlives the longest single model call, and is renewed before each of them.
LONGEST_LEASE = timedelta(seconds=settings.MODEL_TIMEOUT + 60)
LONGEST_WAIT = timedelta(hours=6)
# What ends later than that, or was said later than now, is from before the clock was set back, and
# would hold until it is as late again.
SLACK = timedelta(minutes=1)


class LeasedQuerySet(models.QuerySet):
    def unheld(self):
        """Those that nobody works on, by the database's clock."""
        held = Q(lease_until__gt=Now(), lease_until__lte=Now() + LONGEST_LEASE + SLACK)
        return self.filter(Q(lease_until=None) | ~held)

    def ready(self):
        """Those that are not backing off after a failure, by the database's clock."""
        waits = Q(next_try_at__gt=Now(), next_try_at__lte=Now() + LONGEST_WAIT + SLACK)
        return self.filter(Q(next_try_at=None) | ~waits)

    def within_allowance(self):
        """Those whose project may still spend tokens today, by the database's clock."""
        today = self.annotate(spent=spent_today("project"))
        return today.filter(
            Q(project__memory_daily_tokens=None) | Q(spent__lt=F("project__memory_daily_tokens"))
        )


class Leased(OfProject):
    lease_holder = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="Since it last went well.")
    next_try_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        abstract = True
