"""/api/v1/projects/{slug}/activity/ and …/usage/: what was done to memory, and what it cost."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Session, Visibility
from memory.models import Activity, Call, CallKind, Verb
from memory.schedule import allowance
from projects.access import project_for_reading
from projects.api.filters import Moment
from projects.models import Project, Role

USUAL_SPAN = timedelta(days=30)
LONGEST_SPAN = timedelta(days=366)


def _private_to_others(project: Project, user) -> QuerySet[Session]:
    """The sessions of which `user` is not told."""
    private = Session.objects.filter(project=project, visibility=Visibility.PRIVATE)
    return private.exclude(creator=user)


class ActivitySerializer(serializers.ModelSerializer):
    """One act: ids, verbs and numbers. `by` is null for what Strata did itself; `session` and
    `message` are null too where they are those of somebody else's private session.
    """

    by = serializers.SerializerMethodField()
    whom = serializers.SerializerMethodField(help_text="Of an act on a membership: whose it is.")
    role_before = serializers.ChoiceField(Role.choices, allow_blank=True)
    role_after = serializers.ChoiceField(Role.choices, allow_blank=True)
    entry = serializers.UUIDField(source="entry_id", allow_null=True)
    fact = serializers.UUIDField(source="fact_id", allow_null=True)
    session = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    verb = serializers.ChoiceField(Verb.choices)
    related = serializers.ListField(
        child=serializers.UUIDField(), read_only=True, help_text="Ids of what else it touched."
    )
    receipt = serializers.DictField(
        read_only=True, help_text="Of a forgetting: what went from where, in numbers and ids."
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

    def get_session(self, act: Activity) -> str | None:
        return str(act.session_id) if act.session_id and self._may_be_told(act) else None

    def get_message(self, act: Activity) -> str | None:
        return str(act.message_id) if act.message_id and self._may_be_told(act) else None

    def _may_be_told(self, act: Activity) -> bool:
        return act.session_id not in self.context["untold"]


class ActivityFilter(filters.FilterSet):
    verb = filters.ChoiceFilter(choices=Verb.choices)
    entry = filters.UUIDFilter("entry_id")
    fact = filters.UUIDFilter("fact_id")
    session = filters.UUIDFilter(method="of_session")
    by = filters.CharFilter("by__username", max_length=150)
    whom = filters.CharFilter("whom__username", max_length=150)
    since = Moment("at", "gte")
    until = Moment("at", "lt", help_text="Not included.")

    def of_session(self, acts: QuerySet[Activity], name: str, session) -> QuerySet[Activity]:
        """Which acts concern a private session is told to its creator only."""
        project = project_for_reading(
            self.request.user, self.request.resolver_match.kwargs["slug"], self.request.auth
        )
        if _private_to_others(project, self.request.user).filter(pk=session).exists():
            return acts.none()
        return acts.filter(session_id=session)


class Activities(generics.ListAPIView):
    """What was done to a project's memory, by whom or by what, when, why, and at what cost; the
    newest first. It holds ids and verbs, never a text, and cannot be changed.
    """

    queryset = Activity.objects.none()
    serializer_class = ActivitySerializer
    filterset_class = ActivityFilter

    def get_queryset(self) -> QuerySet[Activity]:
        request = self.request
        self.project = project_for_reading(request.user, self.kwargs["slug"], request.auth)
        return Activity.objects.filter(project=self.project).select_related("by", "whom")

    def list(self, request, *args, **kwargs) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        named = {act.session_id for act in page} - {None}
        private = _private_to_others(self.project, request.user).filter(pk__in=named)
        context = self.get_serializer_context() | {
            "untold": set(private.values_list("pk", flat=True))
        }
        told = self.serializer_class(page, many=True, context=context)
        return self.get_paginated_response(told.data)


class OneActivity(generics.RetrieveAPIView):
    """One act, such as a forgetting with its receipt."""

    queryset = Activity.objects.none()
    serializer_class = ActivitySerializer

    def get_queryset(self) -> QuerySet[Activity]:
        request = self.request
        self.project = project_for_reading(request.user, self.kwargs["slug"], request.auth)
        return Activity.objects.filter(project=self.project).select_related("by", "whom")

    def get_serializer_context(self) -> dict[str, object]:
        context = super().get_serializer_context()
        if self.request is None:
            return context
        private = _private_to_others(self.project, self.request.user)
        return context | {"untold": set(private.values_list("pk", flat=True))}


class SpanSerializer(serializers.Serializer):
    """From `since` to before `until`; the last 30 days unless told otherwise, at most 366."""

    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.setdefault("until", timezone.now())
        since = attrs.setdefault("since", until - USUAL_SPAN)
        if since > until:
            raise serializers.ValidationError({"since": ["This is after the end."]})
        if until - since > LONGEST_SPAN:
            raise serializers.ValidationError({"since": ["At most 366 days at once."]})
        return attrs


class UsageRowSerializer(serializers.Serializer):
    """The calls of one day, in the project's time zone, of one kind to one model.

    `cost` is in US dollars, and null when no call's is known; `unanswered` are the calls that
    brought no text.
    """

    day = serializers.DateField()
    kind = serializers.ChoiceField(CallKind.choices)
    model = serializers.CharField()
    calls = serializers.IntegerField()
    unanswered = serializers.IntegerField()
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)


class AllowanceSerializer(serializers.Serializer):
    """Tokens of today. `limit` null: no limit. Over it, the work waits until `resumes_at`."""

    spent = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    is_spent = serializers.BooleanField()
    resumes_at = serializers.DateTimeField()


class UsageSerializer(serializers.Serializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    today = AllowanceSerializer()
    results = UsageRowSerializer(many=True)


class Usage(APIView):
    """What the writing of a project's memory cost, by day, kind and model, the newest day first;
    and what is left of today's allowance.
    """

    @extend_schema(parameters=[SpanSerializer], responses=UsageSerializer)
    def get(self, request, slug: str) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        asked = SpanSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        since, until = asked.validated_data["since"], asked.validated_data["until"]
        told = {
            "since": since,
            "until": until,
            "today": allowance(project),
            "results": usage(project, since, until),
        }
        return Response(UsageSerializer(told).data)


def usage(project: Project, since: datetime, until: datetime) -> QuerySet:
    """The rows of UsageRowSerializer, as dictionaries: one query."""
    calls = Call.objects.filter(project=project, started_at__gte=since, started_at__lt=until)
    days = calls.annotate(day=TruncDate("started_at", tzinfo=project.zone))
    return (
        days.order_by("-day", "kind", "model")
        .values("day", "kind", "model")
        .annotate(
            calls=Count("pk"),
            unanswered=Count("pk", filter=~Q(outcome="answered")),
            input_tokens=Sum("input_tokens"),
            output_tokens=Sum("output_tokens"),
            cost=Sum("cost"),
            duration_ms=Sum("duration_ms"),
        )
    )
