"""/api/v1/projects/{slug}/facts/: facts, their validity and their sources."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import generics, serializers, status
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from chat.providers.booking import Payer
from memory import facts
from memory.api.base import moment_parameter, reason_of_change
from memory.api.forgetting import ForgetReceiptSerializer, forget_data
from memory.facts import Statement, permissions
from memory.forgetting.service import ForgetScope
from memory.models import Fact, FactStatus, ModerationReason, ReviewReason
from memory.models.facts import MAX_OBJECT_CHARS, MAX_PREDICATE_CHARS, MAX_SUBJECT_CHARS
from memory.recall import relevant_facts
from projects.api.idempotency import idempotent
from projects.api.members import MembershipMixin
from projects.core.api.etags import ETagMixin, if_match_version
from projects.core.api.filters import FlagFilter
from projects.core.text import storable

MAX_HISTORY = 50
VALID_AT = OpenApiParameter(
    "valid_at", OpenApiTypes.DATETIME, description="Facts valid at that time (a date: its end)."
)
RECORDED_AT = OpenApiParameter(
    "recorded_at", OpenApiTypes.DATETIME, description="Facts as they were recorded at that time."
)
STATE = OpenApiParameter("state", enum=[*FactStatus.values], description="Default: live.")
CONTRADICTIONS_SCHEMA = {
    "type": "array",
    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Fact"}},
}


class FactSourceSerializer(serializers.Serializer):
    """A message that states the fact."""

    session = serializers.UUIDField(source="session_id")
    message = serializers.UUIDField(source="message_id")
    seq = serializers.IntegerField(source="message.seq")
    said_at = serializers.DateTimeField(source="message.created_at")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A fact",
            {
                "subject": "Billing",
                "predicate": "is owned by",
                "object": "the platform team",
                "valid_from": "2026-03-01T00:00:00Z",
            },
            request_only=True,
        )
    ]
)
class FactSerializer(serializers.ModelSerializer):
    """`subject` `predicate` `object`, valid from `valid_from` until `valid_until`. `valid_until` is
    null if the fact has no end. Otherwise it was set by a user, or it is the start of `closed_by`,
    the next fact with the same subject and predicate. `sources` are the messages that you may read.
    """

    subject = serializers.CharField(max_length=MAX_SUBJECT_CHARS)
    predicate = serializers.CharField(max_length=MAX_PREDICATE_CHARS)
    object = serializers.CharField(max_length=MAX_OBJECT_CHARS)
    user = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="For a personal fact, your own username; only you can see it. Otherwise null.",
    )
    confidence = serializers.FloatField(min_value=0, max_value=1, required=False)
    valid_from = serializers.DateTimeField(required=False, help_text="Default: now.")
    valid_until = serializers.DateTimeField(required=False, allow_null=True)
    closed_by = serializers.SerializerMethodField()
    waits_because = serializers.ChoiceField(
        ReviewReason.choices,
        read_only=True,
        allow_blank=True,
        help_text="Why it waits for review, or waited until it was rejected.",
    )
    state = serializers.ChoiceField(
        FactStatus.choices, required=False, help_text="Owners can set `live` or `hidden`."
    )
    sources = serializers.SerializerMethodField()
    reason = reason_of_change()

    class Meta:
        model = Fact
        fields = """
            id subject predicate object user confidence valid_from valid_until closed_by recorded_at
            retired_at state waits_because by_hand written_by version sources reason
        """.split()
        read_only_fields = ("id", "recorded_at", "retired_at", "by_hand", "written_by", "version")

    def to_representation(self, instance: Fact) -> dict[str, Any]:
        data = super().to_representation(instance)
        end = getattr(instance, "until", instance.valid_until)
        until = self.fields["valid_until"].to_representation(end) if end else None
        user = instance.user.get_username() if instance.user else None
        # An earlier version has the id of its fact.
        pk = str(instance.earlier_of_id or instance.pk)
        return data | {"id": pk, "valid_until": until, "user": user}

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_closed_by(self, fact: Fact) -> str | None:
        closer = getattr(fact, "closer", None)
        is_closed = closer is not None and fact.until == fact.begun  # type: ignore[attr-defined]
        return str(closer) if is_closed else None

    @extend_schema_field(FactSourceSerializer(many=True))
    def get_sources(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        sources = self.context.get("sources", {}).get(fact.earlier_of_id or fact.pk, [])
        return FactSourceSerializer(sources, many=True).data

    def validate_user(self, name: str | None) -> int | None:
        if not name:
            return None
        user = get_user_model().objects.filter(username=name).first()
        if user is None or user != self.context["request"].user:
            raise serializers.ValidationError("A fact is about the project, or about you.")
        return user.pk

    def create(self, validated_data: dict[str, Any]) -> Fact:
        statement = _statement(validated_data, {"valid_from": timezone.now()})
        fact, self.is_new = facts.create_fact(self.context["member"], statement)
        return fact

    @transaction.atomic
    def update(self, instance: Fact, validated_data: dict[str, Any]) -> Fact:
        by, version = self.context["request"].user, self.context["version"]
        reason = validated_data.pop("reason", ModerationReason.OTHER)
        state = validated_data.pop("state", instance.state)
        # Compare with the state before the edit, because the edit may send the fact to review.
        decides = state != instance.state
        if "user" in validated_data and validated_data.pop("user") != instance.user_id:
            raise ValidationError({"user": ["The user that a fact is about cannot be changed."]})
        if validated_data:
            instance = facts.edit_fields(instance, validated_data, by, version, reason)
            # The edit has already increased the version.
            version = None
        if not decides:
            return instance
        if state == FactStatus.PROPOSED:
            raise ValidationError({"state": ["A fact can be set to live or to hidden."]})
        if not permissions.may_decide(self.context["member"], instance):
            raise PermissionDenied("Only an owner can decide on this fact.")
        if state == FactStatus.HIDDEN:
            return facts.hide(instance, by, reason, version)
        change = facts.approve if instance.state == FactStatus.PROPOSED else facts.unhide
        return change(instance, by, reason, version)


def _statement(changes: Mapping[str, Any], current: Mapping[str, Any]) -> Statement:
    fields = {**current, **changes}
    fields["user_id"] = fields.pop("user", fields.get("user_id"))
    names = Statement.__dataclass_fields__
    return Statement(**{name: value for name, value in fields.items() if name in names})


class FactDetailSerializer(FactSerializer):
    """A fact with the history of its subject and predicate, newest first."""

    history = serializers.SerializerMethodField()

    class Meta(FactSerializer.Meta):
        fields = [*FactSerializer.Meta.fields, "history"]

    @extend_schema_field(FactSerializer(many=True))
    def get_history(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        rows = facts.topic_history(self.context["member"], fact).select_related("user")
        return facts_data(list(rows[:MAX_HISTORY]), self.context)


def facts_data(rows: Sequence[Fact], context: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the serialized facts of `rows`, with the sources that the member may read."""
    sources = permissions.readable_sources(context["member"], rows)
    return FactSerializer(rows, many=True, context={**context, "sources": sources}).data


class FactFilter(filters.FilterSet):
    q = filters.CharFilter(
        # FactListView searches the rows that match all other filters.
        method=lambda rows, name, text: rows,
        max_length=200,
        help_text="Search by meaning and by word; returns one page, the best results first. A "
        "query with quotes, OR or a hyphen before a word is searched by word only.",
    )
    subject = filters.CharFilter(method=lambda rows, name, text: rows.with_subject(text))
    predicate = filters.CharFilter(method=lambda rows, name, text: rows.with_predicate(text))
    user = FlagFilter("user", "isnull", exclude=True, help_text="true: only facts about you.")

    class Meta:
        model = Fact
        fields: tuple[str, ...] = ()


class FactBaseView(MembershipMixin, generics.GenericAPIView):
    queryset = Fact.objects.none()
    serializer_class = FactSerializer

    def get_serializer_context(self) -> dict[str, object]:
        context = super().get_serializer_context()
        return context | {"member": getattr(self, "membership", None), "version": None}


def _replay(view: FactBaseView, request, ids) -> Response:
    fact = permissions.fact_for_reading(view.membership, ids["id"])
    return Response(facts_data([fact], view.get_serializer_context())[0])


class FactListView(FactBaseView, generics.ListCreateAPIView):
    """The facts of a project, newest first, or best first for `q`. Facts that have ended are
    included. `valid_at` returns the facts that were valid at a time. `recorded_at` returns the
    facts that the project had recorded at a time. `state` returns facts that wait for review or are
    hidden.
    """

    filterset_class = FactFilter

    @extend_schema(parameters=[VALID_AT, RECORDED_AT, STATE])
    def get(self, request, *args, **kwargs) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        context = self.get_serializer_context()
        if query := storable(request.query_params.get("q", "")).strip():
            size = self.paginator.get_page_size(request)
            best = relevant_facts(
                self.membership.project, rows, query, size, Payer.of(self.request)
            )
            data = facts_data(best, context)
            return Response({"next": None, "previous": None, "results": data})
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(facts_data(page or [], context))

    @extend_schema(responses={201: FactSerializer, 200: FactSerializer})
    @idempotent(_replay)
    def post(self, request, *args, **kwargs) -> Response:
        """Record a fact. Returns 200 and the existing fact if the same fact is already recorded."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        code = status.HTTP_201_CREATED if serializer.is_new else status.HTTP_200_OK
        fact = permissions.fact_for_reading(self.membership, serializer.instance.pk)
        return Response(facts_data([fact], serializer.context)[0], code)

    def get_queryset(self) -> QuerySet[Fact]:
        project = self.membership.project
        rows = permissions.facts_for(self.membership).select_related("user")
        state = self.request.query_params.get("state", FactStatus.LIVE)
        if state not in FactStatus.values:
            raise ValidationError({"state": ["Use `proposed`, `live` or `hidden`."]})
        if state != FactStatus.LIVE:
            return rows.current().filter(state=state)
        rows = rows.with_validity(moment_parameter(self.request, "recorded_at", project))
        valid_at = moment_parameter(self.request, "valid_at", project)
        return rows if valid_at is None else rows.valid_at(valid_at)


class ContradictionListView(FactBaseView):
    """Groups of facts that have the same subject and predicate and contradict each other."""

    pagination_class = None

    @extend_schema(responses={200: CONTRADICTIONS_SCHEMA})
    def get(self, request, *args, **kwargs) -> Response:
        context = self.get_serializer_context()
        groups = facts.contradictions(self.membership)
        data = iter(facts_data(list(chain.from_iterable(groups)), context))
        return Response([[next(data) for _ in group] for group in groups])


class FactDetailView(ETagMixin, FactBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One fact. Editors may change it. Owners may approve, hide and forget it. An editor may also
    forget a fact about them, and a fact that they alone wrote and stated. To forget a fact, a token
    needs the scope `admin`.
    """

    serializer_class = FactDetailSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")
    deleting_scope = "admin"

    def get_object(self) -> Fact:
        return permissions.fact_for_reading(self.membership, self.kwargs["pk"])

    def get_serializer_context(self) -> dict[str, object]:
        context = super().get_serializer_context()
        if getattr(self, "membership", None) is None:
            return context
        return context | {
            "sources": permissions.readable_sources(self.membership, [self.kwargs["pk"]])
        }

    def patch(self, request, *args, **kwargs) -> Response:
        context = self.get_serializer_context() | {"version": if_match_version(request)}
        serializer = FactDetailSerializer(
            self.get_object(), data=request.data, partial=True, context=context
        )
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(FactDetailSerializer(self.get_object(), context=context).data)

    @extend_schema(responses={200: ForgetReceiptSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        fact, version = self.get_object(), if_match_version(request)
        with transaction.atomic():
            if version is not None:
                facts.lock_version(fact, version)
            return Response(forget_data(self.membership, ForgetScope(fact=fact.pk), request.user))
