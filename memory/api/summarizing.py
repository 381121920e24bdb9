"""/api/v1/sessions/{id}/summarize/: a summary on request."""

import logging
import time

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Session
from chat.permissions import session_for_writing
from memory.api.entries import EntrySerializer
from memory.models import Cursor, Entry
from memory.tasks import summarise_session
from projects.permissions import membership

log = logging.getLogger(__name__)

BROKER_UNAVAILABLE = "It cannot be queued now. It is summarised once it is idle."
# A request for a summary waits so long for the entry.
SUMMARY_WAIT_S = 2.0
SUMMARY_POLL_S = 0.1


class QueuedSerializer(serializers.Serializer):
    """Whether a summary was queued, or one is already being written."""

    queued = serializers.BooleanField()
    running = serializers.BooleanField()


class NotQueuedSerializer(serializers.Serializer):
    """The reason why no summary was queued; `detail` is the same, as in every error."""

    queued = serializers.BooleanField()
    reason = serializers.CharField()
    detail = serializers.CharField()


class SummarizeView(APIView):
    """Summarise the new messages of a session now, even if the session is not idle.

    200 with the entry if it is written within two seconds, else 202. 409 if there is nothing to
    summarise. If a summary is being written, none is queued. 503 while the broker is unavailable:
    then the session is summarised once it is idle.
    """

    @extend_schema(
        request=None,
        responses={
            200: EntrySerializer,
            202: QueuedSerializer,
            409: NotQueuedSerializer,
            503: NotQueuedSerializer,
        },
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
        through = cursor.values_list("summarised_through", flat=True).get()
        if is_free:
            try:
                summarise_session.delay(str(session.pk), force=True)
            except Exception as error:
                # Brokers have no common exception class.
                log.warning("summary_enqueue_failed session=%s cause=%r", session.pk, error)
                return _not_queued(BROKER_UNAVAILABLE, status.HTTP_503_SERVICE_UNAVAILABLE)
        if entry := _wait_for_entry(session, through):
            member = membership(request.user, session.project.slug, token=request.auth)
            context = {"request": request, "member": member}
            return Response(EntrySerializer(entry, context=context).data)
        return Response({"queued": is_free, "running": not is_free}, status.HTTP_202_ACCEPTED)


def _wait_for_entry(session: Session, through: int) -> Entry | None:
    """Return the entry of the messages after the seq `through`, written within SUMMARY_WAIT_S."""
    rows = Entry.objects.filter(project=session.project_id, session=session, first_seq__gt=through)
    end = time.monotonic() + SUMMARY_WAIT_S
    while (entry := rows.order_by("first_seq").first()) is None and time.monotonic() < end:
        if not connection.in_atomic_block:
            # Returns it to the pool, so that others can use it meanwhile.
            connection.close()
        time.sleep(SUMMARY_POLL_S)
    return entry


def _not_queued(reason: str, code: int) -> Response:
    return Response({"queued": False, "reason": reason, "detail": reason}, code)
