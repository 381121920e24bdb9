"""/api/v1/projects/{slug}/facts/: what is held to be so, since when, and who said it."""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from memory import facts
from memory.api.fact_serializers import (
    FactSerializer,
    OneFactSerializer,
    facts_data,
    refusing,
)
from memory.api.forgetting import ForgettingSerializer, receipt_of
from memory.api.moments import moment_of
from memory.facts import access
from memory.forgetting import Scope
from memory.models import Fact, Standing
from memory.models.facts import FactQuerySet
from projects import access as projects_access
from projects.api.filters import Flag
from projects.api.idempotency import idempotent
from projects.api.versions import Tagged, asked_version
from projects.models import Membership

VALID_AT = OpenApiParameter(
    "valid_at", OpenApiTypes.DATETIME, description="Only what was so then (a date: at its end)."
)
RECORDED_AT = OpenApiParameter(
    "recorded_at", OpenApiTypes.DATETIME, description="As the project held it then."
)


# Facts of one subject and predicate.
_CONTRADICTION = {"type": "array", "items": {"$ref": "#/components/schemas/Fact"}}


class FactFilter(filters.FilterSet):
    q = filters.CharFilter(method="matching", help_text="Words of it.")
    subject = filters.CharFilter(method="about")
    predicate = filters.CharFilter(method="saying")
    user = Flag("user", "isnull", exclude=True, help_text="true: only those about you.")

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


def _tell_again(view: FactViews, request, made) -> Response:
    [told] = facts_data([shown(view.membership, made["id"])], view.get_serializer_context())
    return Response(told)


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
        return self.get_paginated_response(facts_data(page or [], self.get_serializer_context()))

    @extend_schema(responses={201: FactSerializer, 200: FactSerializer})
    @idempotent(_tell_again)
    def post(self, request, *args, **kwargs) -> Response:
        """Records a fact; 200 with the one that is there when it says the same."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        code = status.HTTP_201_CREATED if serializer.is_new else status.HTTP_200_OK
        [told] = facts_data([shown(self.membership, serializer.instance.pk)], serializer.context)
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


class Contradictions(FactViews):
    """Facts that cannot all be so: of one subject and predicate, of which none ends the other."""

    pagination_class = None

    @extend_schema(responses={200: {"type": "array", "items": _CONTRADICTION}})
    def get(self, request, *args, **kwargs) -> Response:
        groups = facts.contradictions(self.membership)
        context = self.get_serializer_context()
        return Response([facts_data(group, context) for group in groups])


class OneFact(Tagged, FactViews, generics.RetrieveUpdateDestroyAPIView):
    """One fact. Editors change it, and owners take in what waits, hide it and have it forgotten;
    whoever gave it by hand has it forgotten, too.
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
        context = self.get_serializer_context() | {"version": asked_version(request)}
        serializer = OneFactSerializer(
            self.get_object(), data=request.data, partial=True, context=context
        )
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(OneFactSerializer(self.get_object(), context=context).data)

    @extend_schema(responses={200: ForgettingSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        fact, version = self.get_object(), asked_version(request)
        with transaction.atomic():
            if version is not None:
                with refusing():
                    facts.at_version(fact, version)
            return Response(receipt_of(self.membership, Scope(fact=fact.pk), request.user))
