"""The log of model calls that write memories, and the tokens that they used."""

from django.db import models
from django.db.models import DateTimeField, F, Func, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from projects.core.models import new_id
from projects.models import Project, ProjectScopedModel


class CallKind(models.TextChoices):
    CONVERSATION = "conversation", _("chat summary")
    # Of earlier versions.
    MERGE = "merge", _("merge of partial chat summaries")
    DIGEST = "digest", _("later summary")
    DIGEST_RETRY = "again", _("later summary, second try with missing details")


class Call(ProjectScopedModel):
    """One request to a model: inserted before the request, completed after the response.

    A call whose worker died has no outcome, and its tokens are unknown.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="calls")
    kind = models.CharField(max_length=12, choices=CallKind.choices)
    model = models.CharField(max_length=200)
    session_id = models.UUIDField(null=True, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="US dollars."
    )
    outcome = models.CharField(
        max_length=200, blank=True, help_text="“answered”, or the reason of the failure."
    )

    class Meta:
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        indexes = [models.Index(fields=["project", "-started_at"], name="call_recent")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.model}"


class LocalMidnight(Func):
    """The last midnight in the time zone given by name, by the database clock."""

    template = (
        "(date_trunc('day', statement_timestamp() AT TIME ZONE %(expressions)s)"
        " AT TIME ZONE %(expressions)s)"
    )
    output_field = DateTimeField()


def tokens_spent_today(project: str) -> Coalesce:
    """Return a query expression for the tokens that the project's model calls used today.

    `project` is a field path to the Project, such as "pk" or "project". The day begins at midnight
    in the project's time zone.
    """
    calls = Call.objects.filter(
        project=OuterRef(project), started_at__gte=LocalMidnight(F("project__timezone"))
    )
    total = Sum(F("input_tokens") + F("output_tokens"))
    sums = calls.order_by().values("project").annotate(total=total).values("total")
    return Coalesce(Subquery(sums), 0)
