"""Models of background processes: heartbeats, the leading beat, and crashed tasks."""

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Heartbeat(models.Model):
    """The last time at which a component was alive, by the database clock.

    A component is `worker`, `beat`, or `queue:NAME` for a queue that some worker consumes.
    """

    part = models.CharField(primary_key=True, max_length=20)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.part


class LeadershipQuerySet(models.QuerySet):
    def held_by(self, holder: UUID) -> "LeadershipQuerySet":
        return self.filter(holder=holder, until__gt=Now())

    def claimable_by(self, holder: UUID, lease: timedelta) -> "LeadershipQuerySet":
        """Return the roles that `holder` can claim: free or expired roles, and those that it holds.

        A lease that ends more than `lease` in the future is ignored, because the database clock was
        set back.
        """
        expired = Q(until__isnull=True) | Q(until__lte=Now()) | Q(until__gt=Now() + lease)
        return self.filter(expired | Q(holder=holder))


class Leadership(models.Model):
    """A role that only one process can have. It keeps the role until its lease expires."""

    role = models.CharField(primary_key=True, max_length=20)
    holder = models.UUIDField(null=True)
    # Host name and process id, shown to administrators.
    name = models.CharField(max_length=200, blank=True)
    until = models.DateTimeField(null=True)

    objects = LeadershipQuerySet.as_manager()

    def __str__(self) -> str:
        return self.role


# A task without arguments is only paused for this time, because it serves all projects.
CRASH_PAUSE = timedelta(minutes=10)


class CrashedTaskQuerySet(models.QuerySet):
    def set_aside(self) -> "CrashedTaskQuerySet":
        """Return the tasks that must not run."""
        paused = Q(last_crash_at__gt=Now() - CRASH_PAUSE)
        return self.filter(~Q(args=[], kwargs={}) | paused, set_aside_at__isnull=False)


class CrashedTask(models.Model):
    """A task, with its arguments, during which the worker process died.

    The arguments are ids.
    """

    key = models.CharField(_("key"), primary_key=True, max_length=64, editable=False)
    task = models.CharField(_("task"), max_length=100)
    args = models.JSONField(_("arguments"), default=list)
    kwargs = models.JSONField(_("keyword arguments"), default=dict)
    crashes = models.PositiveIntegerField(_("crashes"), default=0)
    last_crash_at = models.DateTimeField(_("last crash"))
    set_aside_at = models.DateTimeField(
        _("paused since"),
        null=True,
        help_text=_("The task does not run since then. A task without arguments is only paused."),
    )

    objects = CrashedTaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("crashed task")
        verbose_name_plural = _("crashed tasks")

    def __str__(self) -> str:
        return self.task
