"""/api/v1/sessions/{id}/summarize/: a summary on request."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.permissions import session_for_writing
from memory.api.entries import EntrySerializer
from memory.summary_requests import request_summary, wait_for_entry
from projects.permissions import membership


class QueuedSerializer(serializers.Serializer):
    """State of a requested summary: queued, or already being written."""

    queued = serializers.BooleanField()
    running = serializers.BooleanField()


class NotQueuedSerializer(serializers.Serializer):
    """The reason why no summary was queued. `detail` has the same text, as in every error."""

    queued = serializers.BooleanField()
    reason = serializers.CharField()
    detail = serializers.CharField()


class SummarizeView(APIView):
    """Summarise the new messages of a session now, even if the session is not idle.

    Returns 200 with the entry if it is written within two seconds, otherwise 202. If a summary is
    already being written, no other is queued. Returns 409 if there is nothing to summarise. Returns
    503 while the broker is unavailable; the session is then summarised once it is idle.
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
        summary = request_summary(session)
        if summary.reason:
            unavailable = status.HTTP_503_SERVICE_UNAVAILABLE
            code = unavailable if summary.is_broker_down else status.HTTP_409_CONFLICT
            reason = str(summary.reason)
            return Response({"queued": False, "reason": reason, "detail": reason}, code)
        if entry := wait_for_entry(session, summary.after):
            member = membership(request.user, session.project.slug, token=request.auth)
            context = {"request": request, "member": member}
            return Response(EntrySerializer(entry, context=context).data)
        running = {"queued": summary.queued, "running": not summary.queued}
        return Response(running, status.HTTP_202_ACCEPTED)
