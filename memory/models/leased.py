"""Work that one worker at a time may do, and that is tried again later when it fails."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class LeasedQuerySet(models.QuerySet):
    def unheld(self):
        """Those that nobody works on, by the database's clock."""
        return self.filter(Q(lease_until=None) | Q(lease_until__lte=Now()))

    def ready(self):
        """Those that are not backing off after a failure, by the database's clock."""
        return self.filter(Q(next_try_at=None) | Q(next_try_at__lte=Now()))


class Leased(models.Model):
    lease_holder = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="Since it last went well.")
    next_try_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        abstract = True
