"""What the writing of memories costs: each call of a model, booked."""

from django.db import models
from django.db.models import DateTimeField, F, Func, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from projects.identifiers import new_id
from projects.models import OfProject, Project


class CallKind(models.TextChoices):
    CONVERSATION = "conversation", _("a conversation, or a part of one")
    MERGE = "merge", _("merging the parts of a conversation")
    DIGEST = "digest", _("a digest")
    AGAIN = "again", _("a digest once more, with what it had left out")


class Call(OfProject):
    """One request to a model: written before it is made, completed when the answer is there.

    A call whose worker died stays without an outcome; its tokens are not known.
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
        max_length=200, blank=True, help_text="answered, or why not, in Strata's words."
    )

    class Meta:
        indexes = [models.Index(fields=["project", "-started_at"], name="call_recent")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.model}"


class Midnight(Func):
    """The last midnight in the time zone that its argument names, by the database's clock."""

    template = (
        "(date_trunc('day', statement_timestamp() AT TIME ZONE %(expressions)s)"
        " AT TIME ZONE %(expressions)s)"
    )
    output_field = DateTimeField()


def spent_today(project: str) -> Coalesce:
    """In a query, the tokens that models took today for the project that `project` leads to.

    `project` is a path of fields to the Project, such as "pk" or "project". A day begins at
    midnight in the project's zone.
    """
    calls = Call.objects.filter(
        project=OuterRef(project), started_at__gte=Midnight(F("project__timezone"))
    )
    total = Sum(F("input_tokens") + F("output_tokens"))
    summed = calls.order_by().values("project").annotate(total=total).values("total")
    return Coalesce(Subquery(summed), 0)
