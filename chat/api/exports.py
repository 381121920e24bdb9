"""/api/v1/sessions/…/export/: a conversation as a file."""

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.views import APIView

from chat import permissions
from chat.exporters import export_response


class ExportView(APIView):
    """A conversation as a file: Markdown for people, JSON to be imported again."""

    @extend_schema(
        parameters=[OpenApiParameter("format", str, enum=list(settings.CHAT_EXPORTERS))],
        responses={
            (200, "text/markdown"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiTypes.OBJECT,
        },
    )
    def get(self, request, pk):
        session = permissions.session_for_reading(request.user, pk, request.auth)
        format = request.query_params.get("format", "markdown")
        if format not in settings.CHAT_EXPORTERS:
            reason = f"One of {', '.join(settings.CHAT_EXPORTERS)}."
            raise ValidationError({"format": [reason]})
        return export_response(session, format)
