"""/api/v1/…/memory/, its entries, and the wish for a summary now."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404
from django.urls import path
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.access import session_for_writing
from chat.models import Session, Visibility
from memory.access import entries_for
from memory.api.activity import Activities, OneActivity, Usage
from memory.api.blocks import Blocks, OneBlock
from memory.api.facts import Contradictions, Facts, OneFact
from memory.api.forgetting import Forget, ForgettingSerializer, receipt_of
from memory.api.moderation import Acts
from memory.api.moments import moment_of
from memory.api.portability import ExportProject
from memory.api.profile import AboutSomeone
from memory.api.recall import Recall
from memory.api.serializers import (
    BankSerializer,
    EntrySerializer,
    NotQueuedSerializer,
    QueuedSerializer,
    bank_data,
)
from memory.api.texts import EntryRevisions, Told
from memory.api.webhooks import Deliveries, NewSecret, OneWebhook, TestWebhook, Webhooks
from memory.forgetting import Scope
from memory.layers.history import bank_as_of, entry_as_of
from memory.layers.rendering import rendered_bank
from memory.models import Cursor, Entry, Waiting
from memory.models.entries import EntryQuerySet
from memory.tasks import summarise_session
from projects import access
from projects.api.filters import Flag, Moment
from projects.api.versions import Tagged, is_conditional, refuse_changed
from projects.models import Project

log = logging.getLogger(__name__)

BROKER_AWAY = "It cannot be queued now. It is summarised once it has been silent for a while."
AS_OF = OpenApiParameter(
    "as_of",
    OpenApiTypes.DATETIME,
    description="How it stood then (a date: at its end), minus what was forgotten since.",
)
CHILDREN = Prefetch("children", Entry.objects.only("parent"))


class Memory(Tagged, APIView):
    """The project's memory as it stands in every prompt, and what did not fit."""

    @extend_schema(parameters=[AS_OF], responses=BankSerializer)
    def get(self, request, slug: str) -> Response:
        project = access.project_for_reading(request.user, slug, request.auth)
        moment = as_of(request, project)
        bank = bank_as_of(project, moment) if moment else rendered_bank(project)
        return Response(BankSerializer(bank_data(bank, project.bank_max_tokens)).data)


def as_of(request: Request, project: Project) -> datetime | None:
    """The moment that the request asks about. Raises ValidationError for what is no moment."""
    return moment_of(request, "as_of", project)


class EntryFilter(filters.FilterSet):
    """`because`: why it waits for review. `since` and `until` are of the last of its sources; `q`:
    words of it.
    """

    pinned = Flag()
    because = filters.ChoiceFilter("waits_because", choices=Waiting.choices)
    since = Moment("last_source_at", "gte")
    until = Moment("last_source_at", "lt", help_text="Not included.")
    q = filters.CharFilter(method="matching", max_length=200)
    session = filters.UUIDFilter(method="of_session")

    class Meta:
        model = Entry
        fields = ("granularity", "state")

    def matching(self, entries: EntryQuerySet, name: str, words: str) -> EntryQuerySet:
        return entries.matching(words)

    def of_session(self, entries: QuerySet[Entry], name: str, session) -> QuerySet[Entry]:
        """Which entries come from a private session is told to its creator only."""
        shared = Q(session__visibility=Visibility.PROJECT)
        return entries.filter(shared | Q(session__creator=self.request.user), session=session)


class Entries(generics.ListAPIView):
    """The nodes of the layers."""

    queryset = Entry.objects.none()
    serializer_class = EntrySerializer
    filterset_class = EntryFilter
    orderings = {
        "-id": UUID,
        "id": UUID,
        "-last_source_at": datetime.fromisoformat,
        "last_source_at": datetime.fromisoformat,
    }

    def get_queryset(self) -> QuerySet[Entry]:
        request = self.request
        member = access.membership(request.user, self.kwargs["slug"], token=request.auth)
        return entries_for(member).prefetch_related(CHILDREN)


class OneEntry(Tagged, generics.RetrieveUpdateDestroyAPIView):
    """One node. Owners and editors change its text, pin it and hide it; owners have it forgotten,
    with everything it was made of in memory. The messages stay, and are remembered no more.
    """

    queryset = Entry.objects.none()
    serializer_class = EntrySerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    @extend_schema(parameters=[AS_OF])
    def get(self, request, *args, **kwargs) -> Response:
        moment = as_of(request, self.membership.project)
        if moment is None:
            return self.retrieve(request, *args, **kwargs)
        entry = self.get_object()
        stood = entry_as_of(entry, moment)
        if stood is None or stood.summary is None:
            raise Http404
        told = self.get_serializer(entry).data
        then = {name: getattr(stood.state, name) for name in ("state", "pinned", "revision")}
        return Response(told | then | {"summary": stood.summary, "parent": stood.state.parent_id})

    @extend_schema(responses={200: ForgettingSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        with self._unchanged():
            scope = Scope(entry=self.get_object().pk)
            return Response(receipt_of(self.membership, scope, request.user))

    def patch(self, request, *args, **kwargs) -> Response:
        with self._unchanged():
            return self.partial_update(request, *args, **kwargs)

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Inside, the entry is what If-Match names; nobody changes it meanwhile."""
        with transaction.atomic():
            if is_conditional(self.request):
                # The project before its entries, as whoever pins and forgets.
                Project.objects.select_for_update(no_key=True).get(pk=self.membership.project_id)
                list(Entry.objects.select_for_update().filter(pk=self.get_object().pk))
                refuse_changed(self.request, self.get_serializer(self.get_object()).data)
            yield

    def get_queryset(self) -> QuerySet[Entry]:
        return entries_for(self.membership).prefetch_related(CHILDREN)

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"member": self.membership}

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        roles = access.Role.values if request.method in SAFE_METHODS else access.WRITERS
        self.membership = access.membership(request.user, kwargs["slug"], roles, request.auth)


class Summarize(APIView):
    """Has what is new in a conversation summarised now, however short it fell silent ago.

    409 when there is nothing to summarise; while somebody is at it already, nothing is queued. 503
    while the broker is away: it is summarised when it has been silent for long enough.
    """

    @extend_schema(
        request=None,
        responses={202: QueuedSerializer, 409: NotQueuedSerializer, 503: NotQueuedSerializer},
    )
    def post(self, request, pk) -> Response:
        session = session_for_writing(request.user, pk, request.auth)
        cursor = Cursor.objects.filter(pk=session.pk)
        if not cursor.waiting().exists():
            return _not_queued(_why_nothing_waits(session), status.HTTP_409_CONFLICT)
        free = cursor.unheld().exists()
        if free:
            try:
                summarise_session.delay(str(session.pk), force=True)
            except Exception as error:
                # Each broker has its own.
                log.warning("summary_not_queued session=%s cause=%r", session.pk, error)
                return _not_queued(BROKER_AWAY, status.HTTP_503_SERVICE_UNAVAILABLE)
        return Response({"queued": free, "running": not free}, status.HTTP_202_ACCEPTED)


def _not_queued(reason: str, code: int) -> Response:
    return Response({"queued": False, "reason": reason, "detail": reason}, code)


def _why_nothing_waits(session: Session) -> str:
    if not session.project.memory_enabled:
        return "The project's memory is off."
    if session.project.archived_at is not None:
        return "The project is archived."
    if not session.remembered:
        return "This session is not remembered."
    return "There is nothing new to summarise."


urlpatterns = [
    path("projects/<slug:slug>/memory/", Memory.as_view(), name="api-memory"),
    path("projects/<slug:slug>/memory/entries/", Entries.as_view(), name="api-entries"),
    path("projects/<slug:slug>/memory/entries/<uuid:pk>/", OneEntry.as_view(), name="api-entry"),
    path(
        "projects/<slug:slug>/memory/entries/<uuid:pk>/revisions/",
        EntryRevisions.as_view(),
        name="api-entry-revisions",
    ),
    path("projects/<slug:slug>/memory/act/", Acts.as_view(), name="api-act"),
    path("messages/<uuid:pk>/told/", Told.as_view(), name="api-told"),
    path(
        "projects/<slug:slug>/facts/contradictions/",
        Contradictions.as_view(),
        name="api-contradictions",
    ),
    path("projects/<slug:slug>/facts/", Facts.as_view(), name="api-facts"),
    path("projects/<slug:slug>/facts/<uuid:pk>/", OneFact.as_view(), name="api-fact"),
    path("projects/<slug:slug>/activity/", Activities.as_view(), name="api-activity"),
    path(
        "projects/<slug:slug>/activity/<uuid:pk>/", OneActivity.as_view(), name="api-activity-one"
    ),
    path("projects/<slug:slug>/usage/", Usage.as_view(), name="api-usage"),
    path("projects/<slug:slug>/forget/", Forget.as_view(), name="api-forget"),
    path("projects/<slug:slug>/recall/", Recall.as_view(), name="api-recall"),
    path("projects/<slug:slug>/profile/", AboutSomeone.as_view(), name="api-profile"),
    path("projects/<slug:slug>/export/", ExportProject.as_view(), name="api-export"),
    path("projects/<slug:slug>/blocks/", Blocks.as_view(), name="api-blocks"),
    path("projects/<slug:slug>/blocks/<str:name>/", OneBlock.as_view(), name="api-block"),
    path("projects/<slug:slug>/webhooks/", Webhooks.as_view(), name="api-webhooks"),
    path("projects/<slug:slug>/webhooks/<uuid:pk>/", OneWebhook.as_view(), name="api-webhook"),
    path(
        "projects/<slug:slug>/webhooks/<uuid:pk>/secret/",
        NewSecret.as_view(),
        name="api-webhook-secret",
    ),
    path(
        "projects/<slug:slug>/webhooks/<uuid:pk>/test/",
        TestWebhook.as_view(),
        name="api-webhook-test",
    ),
    path(
        "projects/<slug:slug>/webhooks/<uuid:pk>/deliveries/",
        Deliveries.as_view(),
        name="api-deliveries",
    ),
    path("sessions/<uuid:pk>/summarize/", Summarize.as_view(), name="api-summarize"),
]
