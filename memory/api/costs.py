"""/api/v1/projects/{slug}/usage/ and …/limits/, /api/v1/usage/: costs of model calls; limits."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Call, CallKind
from chat.providers import limits
from chat.providers.booking import Payer
from chat.providers.sums import KEYS, plain_rows, summed
from memory.layers.pending import daily_allowance
from projects.core.api.json import StrictSerializer, validated
from projects.core.errors import NotAllowedError
from projects.models import MemberRole, SpendingLimit
from projects.models.limits import AMOUNTS
from projects.permissions import membership, project_for_managing, project_for_reading

DEFAULT_SPAN = timedelta(days=30)
MAX_SPAN = timedelta(days=366)
DEFAULT_KEYS = ("day", "kind", "model")
MAX_ROWS = 50_000
EARLIEST = datetime.min.replace(tzinfo=UTC)


class UsageQuerySerializer(serializers.Serializer):
    """The period from `since` (included) to `until` (excluded): at most 366 days. Default: the last
    30 days. `by` lists the keys to group by, separated by commas: day, kind, model, user, project
    and token.
    """

    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    by = serializers.CharField(
        required=False, max_length=60, help_text="By default `day,kind,model`."
    )

    def validate_by(self, text: str) -> list[str]:
        keys = list(dict.fromkeys(key.strip() for key in text.split(",")))
        if not set(keys) <= set(KEYS):
            raise serializers.ValidationError(f"Choose among {', '.join(KEYS)}.")
        return keys

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs.setdefault("by", DEFAULT_KEYS)
        until = attrs.setdefault("until", timezone.now())
        since = attrs.setdefault("since", until - min(DEFAULT_SPAN, until - EARLIEST))
        if since > until:
            raise serializers.ValidationError({"since": ["This is after the end."]})
        if until - since > MAX_SPAN:
            raise serializers.ValidationError({"since": ["At most 366 days at once."]})
        return attrs


class UsageRowSerializer(serializers.Serializer):
    """The model calls of one group. Days are in the project's time zone, otherwise in UTC.

    `cost` is in US dollars, or null if no price is known. `unanswered` is the number of calls that
    returned no text. `user` is null for automatic work.
    """

    day = serializers.DateField(required=False)
    kind = serializers.ChoiceField(CallKind.choices, required=False)
    model = serializers.CharField(required=False)
    user = serializers.CharField(required=False, allow_null=True)
    project = serializers.CharField(required=False, help_text="Its slug.")
    token = serializers.UUIDField(required=False, allow_null=True)
    calls = serializers.IntegerField()
    unanswered = serializers.IntegerField()
    input_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Part of the input.")
    output_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)

    def to_representation(self, row: Any) -> dict[str, Any]:
        """Leave out the keys that are not used for grouping."""
        data = super().to_representation(row)
        return {name: value for name, value in data.items() if name in row}


class AllowanceSerializer(serializers.Serializer):
    """The tokens that summaries used today. A `limit` of null means no limit. When it is reached,
    summarising is postponed to `resumes_at`.
    """

    spent = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    is_spent = serializers.BooleanField()
    resumes_at = serializers.DateTimeField()


class UsageSerializer(serializers.Serializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    today = AllowanceSerializer()
    results = UsageRowSerializer(many=True)


class OwnUsageSerializer(serializers.Serializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    results = UsageRowSerializer(many=True)


def _usage(query: dict[str, Any], calls: QuerySet[Call], zone: tzinfo) -> dict[str, Any]:
    """Return the sums for the parameters of a request, newest day first."""
    since, until, keys = query["since"], query["until"], query["by"]
    rows = summed(calls.filter(started_at__gte=since, started_at__lt=until), keys, zone)
    rows = rows.order_by(*("-by_day" if key == "day" else f"by_{key}" for key in keys))
    return {"since": since, "until": until, "results": plain_rows(rows[:MAX_ROWS])}


class UsageView(APIView):
    """The model calls of a project by day, kind and model, newest day first, and the tokens that
    are left for summaries today. Only owners can group by `user` and `token`.
    """

    @extend_schema(parameters=[UsageQuerySerializer], responses=UsageSerializer)
    def get(self, request, slug: str) -> Response:
        member = membership(request.user, slug, token=request.auth)
        project = member.project
        query = validated(UsageQuerySerializer, request.query_params)
        if {*query["by"]} & {"user", "token"} and member.role != MemberRole.OWNER:
            raise NotAllowedError("Only owners can see the costs by user and token.")
        data = _usage(query, Call.objects.filter(project=project), project.zone)
        data["today"] = daily_allowance(project)
        return Response(UsageSerializer(data).data)


class OwnUsageView(APIView):
    """The model calls of your own requests in all projects that the token may use."""

    @extend_schema(parameters=[UsageQuerySerializer], responses=OwnUsageSerializer)
    def get(self, request) -> Response:
        calls = Call.objects.filter(user=request.user)
        if request.auth is not None and request.auth.project_id:
            calls = calls.filter(project=request.auth.project_id)
        query = validated(UsageQuerySerializer, request.query_params)
        return Response(OwnUsageSerializer(_usage(query, calls, UTC)).data)


class BudgetSerializer(serializers.Serializer):
    """A limit that applies to your requests in the project. `reserved` is the amount that replies
    in progress may still use.
    """

    subject = serializers.ChoiceField(["project", "user", "token", "group"])
    unit = serializers.ChoiceField(["tokens", "dollars"])
    period = serializers.ChoiceField(["day", "month"])
    maximum = serializers.DecimalField(max_digits=20, decimal_places=4)
    used = serializers.DecimalField(max_digits=20, decimal_places=6)
    reserved = serializers.DecimalField(max_digits=20, decimal_places=6)
    resets_at = serializers.DateTimeField()


class ProjectLimitSerializer(StrictSerializer, serializers.ModelSerializer):
    """The limit of the project. Null means no limit."""

    class Meta:
        model = SpendingLimit
        fields = AMOUNTS


class LimitView(APIView):
    """The limits that apply to your requests in the project, with the used amounts. Owners can set
    the limit of the project.
    """

    scope = "admin"

    @extend_schema(responses=BudgetSerializer(many=True))
    def get(self, request, slug: str) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        budgets = list(limits.all_budgets(project.pk, Payer.of(request)))
        return Response(BudgetSerializer(budgets, many=True).data)

    @extend_schema(request=ProjectLimitSerializer, responses=ProjectLimitSerializer)
    def put(self, request, slug: str) -> Response:
        """Set the limit of the project."""
        project = project_for_managing(request.user, slug, request.auth)
        amounts = validated(ProjectLimitSerializer, request.data)
        limit, _ = SpendingLimit.objects.update_or_create(amounts, project=project)
        return Response(ProjectLimitSerializer(limit).data)
