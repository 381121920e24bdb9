"""/api/v1/projects/{slug}/activity/ and …/usage/: the activity log, and the cost of models."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Session, Visibility
from memory.api.base import MembershipMixin
from memory.layers.pending import daily_allowance
from memory.models import Activity, ActivityVerb, Call, CallKind
from projects.core.api.filters import MomentFilter
from projects.models import MemberRole
from projects.permissions import project_for_reading

DEFAULT_SPAN = timedelta(days=30)
MAX_SPAN = timedelta(days=366)
SUMMED_FIELDS = ("input_tokens", "cached_tokens", "output_tokens", "cost", "duration_ms")


class ActivitySerializer(serializers.ModelSerializer):
    """One recorded action: ids, verbs and numbers. `by` is null for automatic actions. `session`
    and `message` are null if they belong to another user's private session.
    """

    by = serializers.SerializerMethodField()
    whom = serializers.SerializerMethodField(help_text="The member, if a membership was changed.")
    role_before = serializers.ChoiceField(MemberRole.choices, allow_blank=True)
    role_after = serializers.ChoiceField(MemberRole.choices, allow_blank=True)
    entry = serializers.UUIDField(source="entry_id", allow_null=True)
    fact = serializers.UUIDField(source="fact_id", allow_null=True)
    session = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    verb = serializers.ChoiceField(ActivityVerb.choices)
    related = serializers.ListField(
        child=serializers.UUIDField(), read_only=True, help_text="Ids of other affected objects."
    )
    receipt = serializers.DictField(
        read_only=True,
        help_text="For a forget request: what was removed, as numbers and ids. For an import: the "
        "chats, and the rejected items; `count` is the number of messages.",
    )

    class Meta:
        model = Activity
        fields = (
            "id",
            "at",
            "verb",
            "by",
            "whom",
            "role_before",
            "role_after",
            "entry",
            "fact",
            "session",
            "message",
            "granularity",
            "period_key",
            "related",
            "count",
            "reason",
            "receipt",
            "calls",
            "input_tokens",
            "output_tokens",
            "cost",
            "duration_ms",
        )
        read_only_fields = fields

    def get_by(self, act: Activity) -> str | None:
        return act.by.get_username() if act.by else None

    def get_whom(self, act: Activity) -> str | None:
        return act.whom.get_username() if act.whom else None

    def get_session(self, act: Any) -> UUID | None:
        return None if act.is_private else act.session_id

    def get_message(self, act: Any) -> UUID | None:
        return None if act.is_private else act.message_id


class ActivityFilter(filters.FilterSet):
    verb = filters.ChoiceFilter(choices=ActivityVerb.choices)
    entry = filters.UUIDFilter("entry_id")
    fact = filters.UUIDFilter("fact_id")
    session = filters.UUIDFilter(method="filter_session")
    by = filters.CharFilter("by__username", max_length=150)
    whom = filters.CharFilter("whom__username", max_length=150)
    since = MomentFilter("at", "gte")
    until = MomentFilter("at", "lt", help_text="Not included.")

    def filter_session(self, acts: QuerySet[Activity], name: str, pk) -> QuerySet[Activity]:
        """Return the actions on a session, or none if it is another user's private session."""
        return acts.filter(session_id=pk, is_private=False)  # type: ignore[misc]


class ActivityBaseView(MembershipMixin, generics.GenericAPIView):
    queryset = Activity.objects.none()
    serializer_class = ActivitySerializer

    def get_queryset(self) -> QuerySet[Activity]:
        private = Session.objects.filter(pk=OuterRef("session_id"), visibility=Visibility.PRIVATE)
        private = private.exclude(creator=self.request.user)
        acts = Activity.objects.filter(project=self.membership.project_id)
        return acts.select_related("by", "whom").annotate(is_private=Exists(private))


class ActivityListView(ActivityBaseView, generics.ListAPIView):
    """The activity log of a project's memory, newest first: actor, time, reason and cost of each
    action. The log contains ids and verbs but no text, and cannot be changed.
    """

    filterset_class = ActivityFilter


class ActivityDetailView(ActivityBaseView, generics.RetrieveAPIView):
    """One recorded action, such as a forget request with its receipt."""


class UsageQuerySerializer(serializers.Serializer):
    """The period from `since` (included) to `until` (excluded): at most 366 days. Default: the last
    30 days.
    """

    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.setdefault("until", timezone.now())
        since = attrs.setdefault("since", until - DEFAULT_SPAN)
        if since > until:
            raise serializers.ValidationError({"since": ["This is after the end."]})
        if until - since > MAX_SPAN:
            raise serializers.ValidationError({"since": ["At most 366 days at once."]})
        return attrs


class UsageRowSerializer(serializers.Serializer):
    """The model calls of one day, in the project's time zone, by kind and model.

    `cost` is in US dollars, or null if no price is known. `unanswered` is the number of calls that
    returned no text.
    """

    day = serializers.DateField()
    kind = serializers.ChoiceField(CallKind.choices)
    model = serializers.CharField()
    calls = serializers.IntegerField()
    unanswered = serializers.IntegerField()
    input_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Part of the input.")
    output_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)


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


class UsageView(APIView):
    """The model calls of a project by day, kind and model, newest day first, and the tokens that
    are left for summaries today.
    """

    @extend_schema(parameters=[UsageQuerySerializer], responses=UsageSerializer)
    def get(self, request, slug: str) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        query = UsageQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        since, until = query.validated_data["since"], query.validated_data["until"]
        calls = Call.objects.filter(project=project, started_at__gte=since, started_at__lt=until)
        days = calls.annotate(day=TruncDate("started_at", tzinfo=project.zone))
        rows = days.order_by("-day", "kind", "model").values("day", "kind", "model")
        rows = rows.annotate(
            calls=Count("pk"),
            unanswered=Count("pk", filter=~Q(outcome="answered")),
            **{name: Sum(name) for name in SUMMED_FIELDS},
        )
        data = {**query.validated_data, "today": daily_allowance(project), "results": rows}
        return Response(UsageSerializer(data).data)
