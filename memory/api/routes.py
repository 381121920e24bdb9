"""/api/v1/…/memory/, its entries, and the wish for a summary now."""

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.urls import path
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.access import session_for_writing
from chat.models import Visibility
from memory.access import entries_for
from memory.api.recall import Recall
from memory.api.serializers import (
    BankSerializer,
    EntrySerializer,
    QueuedSerializer,
    bank_data,
)
from memory.layers.digests import rendered_bank
from memory.models import Entry
from memory.tasks import summarise_session
from projects import access

CHILDREN = Prefetch("children", Entry.objects.only("parent"))


class Memory(APIView):
    """The project's memory as it stands in every prompt, and what did not fit."""

    @extend_schema(responses=BankSerializer)
    def get(self, request, slug: str) -> Response:
        project = access.project_for_reading(request.user, slug, request.auth)
        bank = rendered_bank(project)
        return Response(BankSerializer(bank_data(bank, project.bank_max_tokens)).data)


class EntryFilter(filters.FilterSet):
    session = filters.UUIDFilter(method="of_session")

    class Meta:
        model = Entry
        fields = ("granularity", "state", "pinned")

    def of_session(self, entries: QuerySet[Entry], name: str, session) -> QuerySet[Entry]:
        """Which entries come from a private session is told to its creator only."""
        shared = Q(session__visibility=Visibility.PROJECT)
        return entries.filter(shared | Q(session__creator=self.request.user), session=session)


class Entries(generics.ListAPIView):
    """The nodes of the layers."""

    queryset = Entry.objects.none()
    serializer_class = EntrySerializer
    filterset_class = EntryFilter

    def get_queryset(self) -> QuerySet[Entry]:
        request = self.request
        member = access.membership(request.user, self.kwargs["slug"], token=request.auth)
        return entries_for(member).prefetch_related(CHILDREN)


class OneEntry(generics.RetrieveUpdateAPIView):
    """One node. Owners and editors change its text, pin it and hide it."""

    queryset = Entry.objects.none()
    serializer_class = EntrySerializer
    http_method_names = ("get", "patch", "head", "options")

    def get_queryset(self) -> QuerySet[Entry]:
        return entries_for(self.membership).prefetch_related(CHILDREN)

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"member": self.membership}

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)
        roles = access.Role.values if request.method in SAFE_METHODS else access.WRITERS
        self.membership = access.membership(request.user, kwargs["slug"], roles, request.auth)


class Summarize(APIView):
    """Has what is new in a conversation summarised now, however short it fell silent ago."""

    @extend_schema(request=None, responses={202: QueuedSerializer})
    def post(self, request, pk) -> Response:
        session = session_for_writing(request.user, pk, request.auth)
        transaction.on_commit(lambda: summarise_session.delay(str(session.pk), force=True))
        return Response({"queued": True}, status.HTTP_202_ACCEPTED)


urlpatterns = [
    path("projects/<slug:slug>/memory/", Memory.as_view(), name="api-memory"),
    path("projects/<slug:slug>/memory/entries/", Entries.as_view(), name="api-entries"),
    path("projects/<slug:slug>/memory/entries/<uuid:pk>/", OneEntry.as_view(), name="api-entry"),
    path("projects/<slug:slug>/recall/", Recall.as_view(), name="api-recall"),
    path("sessions/<uuid:pk>/summarize/", Summarize.as_view(), name="api-summarize"),
]
