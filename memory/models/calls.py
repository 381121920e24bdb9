"""The number of tokens that summaries used today."""

from django.db.models import DateTimeField, F, Func, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from chat.models import SUMMARY_KINDS, Call, CallKind

__all__ = ["Call", "CallKind", "tokens_spent_today"]


class LocalMidnight(Func):
    """The last midnight in a named time zone, by the database clock."""

    template = (
        "(date_trunc('day', statement_timestamp() AT TIME ZONE %(expressions)s)"
        " AT TIME ZONE %(expressions)s)"
    )
    output_field = DateTimeField()


def tokens_spent_today(project: str) -> Coalesce:
    """Return a query expression: the number of tokens that the project's summaries used today.

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
