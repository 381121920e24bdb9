"""Base class of rows that one worker at a time works on, with retries after failures."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import DateTimeField, F, Func, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext_lazy as _

from chat.models import SUMMARY_KINDS, Call
from projects.models import ProjectScopedModel

# A lease is longer than the longest model call. Workers renew it before each call.
MAX_LEASE = timedelta(seconds=settings.MODEL_TIMEOUT + 60)
MAX_RETRY_WAIT = timedelta(hours=6)
# A lease ends at most MAX_LEASE in the future, and a wait at most MAX_RETRY_WAIT. A time that is
# later by more than this tolerance was written before the clock was set back, and is ignored.
CLOCK_SLACK = timedelta(minutes=1)


class LocalMidnight(Func):
    """The last midnight in a named time zone, by the database clock."""

    template = (
        "(date_trunc('day', statement_timestamp() AT TIME ZONE %(expressions)s)"
        " AT TIME ZONE %(expressions)s)"
    )
    output_field = DateTimeField()


def tokens_spent_today(project: str) -> Coalesce:
    """Return a query expression for the tokens that the project's summaries used today.

    `project` is a field path to the Project, such as "pk" or "project". The day begins at midnight
    in the project's time zone.
    """
    calls = Call.objects.filter(
        project=OuterRef(project),
        kind__in=SUMMARY_KINDS,
        started_at__gte=LocalMidnight(F("project__timezone")),
    )
    total = Sum(F("input_tokens") + F("output_tokens"))
    sums = calls.order_by().values("project").annotate(total=total).values("total")
    return Coalesce(Subquery(sums), 0)


class LeasedQuerySet(models.QuerySet):
    def unleased(self):
        """Return the rows without a valid lease, by the database clock."""
        leased = Q(lease_until__gt=Now(), lease_until__lte=Now() + MAX_LEASE + CLOCK_SLACK)
        return self.filter(Q(lease_until=None) | ~leased)

    def ready(self):
        """Return the rows that do not wait after a failure, by the database clock."""
        waits = Q(next_try_at__gt=Now(), next_try_at__lte=Now() + MAX_RETRY_WAIT + CLOCK_SLACK)
        return self.filter(Q(next_try_at=None) | ~waits)

    def within_allowance(self):
        """Return the rows whose project has tokens left today, by the database clock."""
        today = self.annotate(spent=tokens_spent_today("project"))
        return today.filter(
            Q(project__memory_daily_tokens=None) | Q(spent__lt=F("project__memory_daily_tokens"))
        )


class LeasedModel(ProjectScopedModel):
    lease_holder = models.UUIDField(_("leased by"), null=True, blank=True)
    lease_until = models.DateTimeField(_("leased until"), null=True, blank=True)
    failures = models.PositiveIntegerField(
        _("failures"), default=0, help_text=_("Failures since the last success.")
    )
    next_try_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    last_error = models.CharField(_("last error"), max_length=500, blank=True)

    class Meta:
        abstract = True
