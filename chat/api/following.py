"""/api/v1/messages/…/stream/: a reply, for who comes to it late or comes back."""

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from chat import access
from chat.api.answering import EVENTS, go_on
from chat.api.resuming import LAST_EVENT_ID
from chat.api.streaming import MEDIA_TYPE


class Follow(APIView):
    """A reply as it is being said, by whichever process; of one that is over, all that was said."""

    @extend_schema(
        parameters=[LAST_EVENT_ID],
        responses={(200, MEDIA_TYPE): EVENTS, 204: None},
    )
    def get(self, request, pk) -> HttpResponseBase:
        """Events `delta`, and `done` or `error` at the end. Whoever heard the end gets 204."""
        return go_on(request, access.message_for_reading(request.user, pk, request.auth))
