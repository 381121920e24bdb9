"""Signs of life of the parts that work in the background, and which beat leads."""

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Heartbeat(models.Model):
    """When a part (worker, beat, a queue that a worker takes from) was last known to live, by the
    database's clock.
    """

    part = models.CharField(primary_key=True, max_length=20)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.part


class LeadershipQuerySet(models.QuerySet):
    def held_by(self, holder: UUID) -> "LeadershipQuerySet":
        return self.filter(holder=holder, until__gt=Now())

    def claimable_by(self, holder: UUID, lease: timedelta) -> "LeadershipQuerySet":
        """Held by nobody, by nobody any more, or by `holder` already; or until a time that no
        `lease` reaches, as when the database's clock was set back.
        """
        over = Q(until__isnull=True) | Q(until__lte=Now()) | Q(until__gt=Now() + lease)
        return self.filter(over | Q(holder=holder))


class Leadership(models.Model):
    """Which of several processes does what only one may do, and until when if it is silent, by the
    database's clock.
    """

    role = models.CharField(primary_key=True, max_length=20)
    holder = models.UUIDField(null=True)
    # Machine and process, for people.
    name = models.CharField(max_length=200, blank=True)
    until = models.DateTimeField(null=True)

    objects = LeadershipQuerySet.as_manager()

    def __str__(self) -> str:
        return self.role
