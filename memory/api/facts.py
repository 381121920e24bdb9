"""/api/v1/projects/{slug}/facts/: what is held to be so, since when, and who said it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from memory import facts
from memory.api.forgetting import ForgettingSerializer, receipt_of
from memory.api.moments import moment_of
from memory.facts import Refused, Statement, access
from memory.facts.changing import statement_of
from memory.forgetting import Scope
from memory.models import Fact, Reason, Standing
from memory.models.facts import (
    LONGEST_OBJECT,
    LONGEST_PREDICATE,
    LONGEST_SUBJECT,
    FactQuerySet,
)
from projects import access as projects_access
from projects.models import Membership

VALID_AT = OpenApiParameter(
    "valid_at", OpenApiTypes.DATETIME, description="Only what was so then (a date: at its end)."
)
RECORDED_AT = OpenApiParameter(
    "recorded_at", OpenApiTypes.DATETIME, description="As the project held it then."
)
# Of one topic, told with each of its facts.
HISTORY_SHOWN = 50


class SourceSerializer(serializers.Serializer):
    """A message that tells the fact."""

    session = serializers.UUIDField(source="session_id")
    message = serializers.UUIDField(source="message_id")
    seq = serializers.IntegerField(source="message.seq")
    said_at = serializers.DateTimeField(source="message.created_at")


class FactSerializer(serializers.ModelSerializer):
    """`subject` `predicate` `object`, from `valid_from` until `valid_until`, which is null for what
    is so still: an end that somebody gave, or the beginning of `closed_by`, the next fact of the
    same subject and predicate. `sources` are the messages that the asker may read.
    """

    subject = serializers.CharField(max_length=LONGEST_SUBJECT)
    predicate = serializers.CharField(max_length=LONGEST_PREDICATE)
    object = serializers.CharField(max_length=LONGEST_OBJECT)
    user = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Whom alone it is about and shown to: your own username, or null.",
    )
    confidence = serializers.FloatField(min_value=0, max_value=1, required=False)
    valid_from = serializers.DateTimeField(required=False, help_text="Now, if it is not given.")
    valid_until = serializers.DateTimeField(required=False, allow_null=True)
    closed_by = serializers.SerializerMethodField()
    state = serializers.ChoiceField(
        Standing.choices, required=False, help_text="Owners set it to live and to hidden."
    )
    sources = serializers.SerializerMethodField()
    reason = serializers.ChoiceField(
        Reason.choices,
        write_only=True,
        required=False,
        help_text="Why it is changed, for the activity log.",
    )

    class Meta:
        model = Fact
        fields: tuple[str, ...] = (
            "id",
            "subject",
            "predicate",
            "object",
            "user",
            "confidence",
            "valid_from",
            "valid_until",
            "closed_by",
            "recorded_at",
            "retired_at",
            "state",
            "waits_because",
            "by_hand",
            "written_by",
            "version",
            "sources",
            "reason",
        )
        read_only_fields = (
            "id",
            "recorded_at",
            "retired_at",
            "waits_because",
            "by_hand",
            "written_by",
            "version",
        )

    def to_representation(self, instance: Fact) -> dict[str, Any]:
        told = super().to_representation(instance)
        ends = getattr(instance, "until", instance.valid_until)
        until = self.fields["valid_until"].to_representation(ends) if ends else None
        user = instance.user.get_username() if instance.user else None
        # An earlier version is told under the id of its fact.
        return told | {
            "id": str(instance.earlier_of_id or instance.pk),
            "valid_until": until,
            "user": user,
        }

    @extend_schema_field(OpenApiTypes.UUID)
    def get_closed_by(self, fact: Fact) -> str | None:
        closer = getattr(fact, "closer", None)
        ended = closer is not None and fact.until == fact.begun  # type: ignore[attr-defined]
        return str(closer) if ended else None

    @extend_schema_field(SourceSerializer(many=True))
    def get_sources(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        sources = self.context.get("sources", {}).get(fact.earlier_of_id or fact.pk, [])
        return SourceSerializer(sources, many=True).data

    def validate_user(self, name: str | None) -> int | None:
        if not name:
            return None
        user = get_user_model().objects.filter(username=name).first()
        if user is None or user != self.context["request"].user:
            raise serializers.ValidationError("A fact is about the project, or about you.")
        return user.pk

    def create(self, validated_data: dict[str, Any]) -> Fact:
        given = _statement(validated_data, {"valid_from": timezone.now()})
        with refusing():
            fact, self.is_new = facts.give(self.context["member"], given)
        return fact

    def update(self, instance: Fact, validated_data: dict[str, Any]) -> Fact:
        by, reason = self.context["request"].user, validated_data.pop("reason", Reason.OTHER)
        state = validated_data.pop("state", instance.state)
        if "user" in validated_data and validated_data.pop("user") != instance.user_id:
            raise ValidationError({"user": ["Whom a fact is about stays as it is."]})
        with refusing():
            if validated_data:
                there = vars(statement_of(instance))
                given = _statement(validated_data, there)
                instance = facts.edit(instance, given, by, self.context["version"], reason)
            if state != instance.state:
                instance = self._decide(instance, state, by, reason)
        return instance

    def _decide(self, fact: Fact, state: str, by: Any, reason: str) -> Fact:
        if state == Standing.PROPOSED:
            raise ValidationError({"state": ["A fact can be set to live or to hidden."]})
        if not access.may_decide(self.context["member"], fact):
            raise PermissionDenied("An owner decides on it.")
        if state == Standing.HIDDEN:
            return facts.hide(fact, by, reason)
        act = facts.approve if fact.state == Standing.PROPOSED else facts.show
        return act(fact, by, reason)


def _statement(given: Mapping[str, Any], there: Mapping[str, Any]) -> Statement:
    fields = {**there, **given}
    fields["user_id"] = fields.pop("user", fields.get("user_id"))
    names = Statement.__dataclass_fields__
    return Statement(**{name: value for name, value in fields.items() if name in names})


class refusing:
    """Inside, what is refused is told as a ValidationError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, refused, trace) -> None:
        if isinstance(refused, Refused):
            raise ValidationError({"detail": str(refused)}) from refused


class OneFactSerializer(FactSerializer):
    """A fact with all that was so of its subject and predicate, the newest first."""

    history = serializers.SerializerMethodField()

    class Meta(FactSerializer.Meta):
        fields = (*FactSerializer.Meta.fields, "history")

    @extend_schema_field(FactSerializer(many=True))
    def get_history(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        rows = facts.history(self.context["member"], fact).select_related("user")[:HISTORY_SHOWN]
        return _told(list(rows), self.context)


def _told(rows: Sequence[Fact], context: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    sources = access.readable_sources(context["member"], rows)
    return FactSerializer(rows, many=True, context={**context, "sources": sources}).data


class FactFilter(filters.FilterSet):
    q = filters.CharFilter(method="matching", help_text="Words of it.")
    subject = filters.CharFilter(method="about")
    predicate = filters.CharFilter(method="saying")
    user = filters.BooleanFilter(
        "user", "isnull", exclude=True, help_text="true: only those about you."
    )

    class Meta:
        model = Fact
        fields: tuple[str, ...] = ()

    def matching(self, rows: FactQuerySet, name: str, text: str) -> FactQuerySet:
        return rows.matching(text)

    def about(self, rows: FactQuerySet, name: str, subject: str) -> FactQuerySet:
        return rows.about(subject)

    def saying(self, rows: FactQuerySet, name: str, predicate: str) -> FactQuerySet:
        return rows.saying(predicate)


class FactViews(generics.GenericAPIView):
    """What both routes stand on: members read, editors write."""

    queryset = Fact.objects.none()
    serializer_class = FactSerializer

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        roles = (
            projects_access.Role.values
            if request.method in SAFE_METHODS
            else projects_access.WRITERS
        )
        self.membership: Membership = projects_access.membership(
            request.user, kwargs["slug"], roles, request.auth
        )
        # Known already.
        self.membership.user = request.user

    def get_serializer_context(self) -> dict[str, object]:
        context = super().get_serializer_context()
        return context | {"member": getattr(self, "membership", None), "version": None}


class Facts(FactViews, generics.ListCreateAPIView):
    """What the project holds to be so, the newest recorded first: all that stands, also what has
    ended; with `valid_at` what was so then, with `recorded_at` as the project held it then. With
    `state` those that wait for review or are hidden.
    """

    filterset_class = FactFilter

    @extend_schema(
        parameters=[
            VALID_AT,
            RECORDED_AT,
            OpenApiParameter("state", enum=[*Standing.values], description="live, if not given."),
        ]
    )
    def get(self, request, *args, **kwargs) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(_told(page or [], self.get_serializer_context()))

    @extend_schema(responses={201: FactSerializer, 200: FactSerializer})
    def post(self, request, *args, **kwargs) -> Response:
        """Records a fact; 200 with the one that is there when it says the same."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        code = status.HTTP_201_CREATED if serializer.is_new else status.HTTP_200_OK
        [told] = _told([shown(self.membership, serializer.instance.pk)], serializer.context)
        return Response(told, code)

    def get_queryset(self) -> QuerySet[Fact]:
        project = self.membership.project
        rows = access.facts_for(self.membership).select_related("user")
        state = self.request.query_params.get("state", Standing.LIVE)
        if state not in Standing.values:
            raise ValidationError({"state": ["It is proposed, live or hidden."]})
        if state != Standing.LIVE:
            return rows.current().filter(state=state)
        rows = rows.known(moment_of(self.request, "recorded_at", project))
        valid_at = moment_of(self.request, "valid_at", project)
        return rows if valid_at is None else rows.valid_at(valid_at)


def shown(member: Membership, pk: UUID) -> Fact:
    """The fact as it is now, with its end, in any state. Raises Http404."""
    rows = access.facts_for(member).current().select_related("user", "project")
    fact = rows.known().filter(pk=pk).first() or rows.filter(pk=pk).first()
    if fact is None:
        raise Http404
    return fact


class OneFact(FactViews, generics.RetrieveUpdateDestroyAPIView):
    """One fact. Editors change it, and owners take in what waits, hide it and have it forgotten;
    whoever gave it by hand has it forgotten, too. `If-Match` names the version that was read.
    """

    serializer_class = OneFactSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Fact:
        return shown(self.membership, self.kwargs["pk"])

    def get_serializer_context(self) -> dict[str, object]:
        context = super().get_serializer_context()
        if getattr(self, "membership", None) is None:
            return context
        sources = access.readable_sources(self.membership, [self.kwargs["pk"]])
        return context | {"sources": sources}

    def patch(self, request, *args, **kwargs) -> Response:
        context = self.get_serializer_context() | {"version": version_of(request)}
        serializer = OneFactSerializer(
            self.get_object(), data=request.data, partial=True, context=context
        )
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(OneFactSerializer(self.get_object(), context=context).data)

    @extend_schema(responses={200: ForgettingSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        scope = Scope(fact=self.get_object().pk)
        return Response(receipt_of(self.membership, scope, request.user))


def version_of(request) -> int | None:
    """The version that If-Match names; None when any will do."""
    given = request.headers.get("If-Match", "*").strip().removeprefix("W/").strip('"')
    if given == "*":
        return None
    if not given.isdigit() or len(given) > 9:
        raise ValidationError({"detail": 'If-Match takes the version of the fact, such as "3".'})
    return int(given)
