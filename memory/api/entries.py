"""/api/v1/…/memory/, its entries, and …/summarize/."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Visibility
from chat.permissions import session_for_writing
from memory.api.base import AS_OF, MembershipMixin, moment_parameter
from memory.api.forgetting import ForgetReceiptSerializer, forget_data
from memory.api.serializers import (
    BankSerializer,
    EntrySerializer,
    NotQueuedSerializer,
    QueuedSerializer,
    bank_data,
)
from memory.forgetting.service import ForgetScope
from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of, entry_as_of
from memory.models import Cursor, Entry, ReviewReason
from memory.permissions import entries_for
from memory.tasks import summarise_session
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.core.api.filters import FlagFilter, MomentFilter
from projects.models import Project
from projects.permissions import project_for_reading

log = logging.getLogger(__name__)

BROKER_UNAVAILABLE = (
    "It cannot be queued now. It is summarised once it has been silent for a while."
)
CHILDREN = Prefetch("children", Entry.objects.only("parent"))


class BankView(ETagMixin, APIView):
    """The memory bank of the project, as in every prompt, and the entries that did not fit."""

    @extend_schema(parameters=[AS_OF], responses=BankSerializer)
    def get(self, request, slug: str) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        moment = moment_parameter(request, "as_of", project)
        bank = bank_as_of(project, moment) if moment else rendered_bank(project)
        return Response(BankSerializer(bank_data(bank, project.bank_max_tokens)).data)


class EntryFilter(filters.FilterSet):
    """`because` is the reason why it waits for review; `since` and `until` are compared with the
    time of its last source; `q` searches its words.
    """

    pinned = FlagFilter()
    because = filters.ChoiceFilter("waits_because", choices=ReviewReason.choices)
    since = MomentFilter("last_source_at", "gte")
    until = MomentFilter("last_source_at", "lt", help_text="Not included.")
    q = filters.CharFilter(
        method=lambda entries, name, words: entries.matching(words), max_length=200
    )
    session = filters.UUIDFilter(method="filter_session")

    class Meta:
        model = Entry
        fields = ("granularity", "state")

    def filter_session(self, entries: QuerySet[Entry], name: str, session) -> QuerySet[Entry]:
        """Return the entries of a session; those of a private one to its creator only."""
        shared = Q(session__visibility=Visibility.PROJECT)
        return entries.filter(shared | Q(session__creator=self.request.user), session=session)


class EntryBaseView(MembershipMixin, generics.GenericAPIView):
    queryset = Entry.objects.none()
    serializer_class = EntrySerializer

    def get_queryset(self) -> QuerySet[Entry]:
        return entries_for(self.membership).prefetch_related(CHILDREN)


class EntryListView(EntryBaseView, generics.ListAPIView):
    """The entries of all layers."""

    filterset_class = EntryFilter
    orderings = {
        "-id": UUID,
        "id": UUID,
        "-last_source_at": datetime.fromisoformat,
        "last_source_at": datetime.fromisoformat,
    }


class EntryDetailView(ETagMixin, EntryBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One entry. Owners and editors may change its text, pin it and hide it. Owners may forget it,
    with all entries that it was made from; the messages stay, and are no longer remembered.
    """

    http_method_names = ("get", "patch", "delete", "head", "options")

    @extend_schema(parameters=[AS_OF])
    def get(self, request, *args, **kwargs) -> Response:
        moment = moment_parameter(request, "as_of", self.membership.project)
        if moment is None:
            return self.retrieve(request, *args, **kwargs)
        entry = self.get_object()
        past = entry_as_of(entry, moment)
        if past is None or past.summary is None:
            raise Http404
        state = {name: getattr(past.state, name) for name in ("state", "pinned", "revision")}
        state |= {"summary": past.summary, "parent": past.state.parent_id}
        return Response(self.get_serializer(entry).data | state)

    @extend_schema(responses={200: ForgetReceiptSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        with self._precondition():
            scope = ForgetScope(entry=self.get_object().pk)
            return Response(forget_data(self.membership, scope, request.user))

    def patch(self, request, *args, **kwargs) -> Response:
        with self._precondition():
            return self.partial_update(request, *args, **kwargs)

    @contextmanager
    def _precondition(self) -> Iterator[None]:
        """Check If-Match, and lock the entry until the end of the block."""
        with transaction.atomic():
            if is_conditional(self.request):
                # Moderation and forgetting lock the project before its entries, too.
                Project.objects.select_for_update(no_key=True).get(pk=self.membership.project_id)
                list(Entry.objects.select_for_update().filter(pk=self.get_object().pk))
                check_if_match(self.request, self.get_serializer(self.get_object()).data)
            yield

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"member": self.membership}


class SummarizeView(APIView):
    """Summarise the new messages of a session now, however recent they are.

    409 if there is nothing to summarise. If a summary is being written, none is queued. 503 while
    the broker is unavailable: then the session is summarised once it is idle.
    """

    @extend_schema(
        request=None,
        responses={202: QueuedSerializer, 409: NotQueuedSerializer, 503: NotQueuedSerializer},
    )
    def post(self, request, pk) -> Response:
        session = session_for_writing(request.user, pk, request.auth)
        cursor = Cursor.objects.filter(pk=session.pk)
        if not cursor.waiting().exists():
            reason = "There is nothing new to summarise."
            if not session.project.memory_enabled:
                reason = "The project's memory is off."
            elif session.project.archived_at is not None:
                reason = "The project is archived."
            elif not session.remembered:
                reason = "This session is not remembered."
            return _not_queued(reason, status.HTTP_409_CONFLICT)
        is_free = cursor.unleased().exists()
        if is_free:
            try:
                summarise_session.delay(str(session.pk), force=True)
            except Exception as error:
                # Brokers have no common exception class.
                log.warning("summary_enqueue_failed session=%s cause=%r", session.pk, error)
                return _not_queued(BROKER_UNAVAILABLE, status.HTTP_503_SERVICE_UNAVAILABLE)
        return Response({"queued": is_free, "running": not is_free}, status.HTTP_202_ACCEPTED)


def _not_queued(reason: str, code: int) -> Response:
    return Response({"queued": False, "reason": reason, "detail": reason}, code)
