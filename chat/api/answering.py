"""How the API answers when a reply is awaited, and when something cannot be done."""

from collections.abc import Iterator
from contextlib import contextmanager

from drf_spectacular.types import OpenApiTypes
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from chat import access
from chat.api import streaming
from chat.api.serializers import ExchangeSerializer
from chat.changes import Refused
from chat.models import Message, Session
from chat.models.sessions import SessionStatus
from projects.api.errors import CONFLICT

# What a route that answers tells of itself in the schema.
EXCHANGE = {
    (201, "application/json"): ExchangeSerializer,
    (200, streaming.MEDIA_TYPE): OpenApiTypes.STR,
} | CONFLICT


class Conflict(APIException):
    status_code = status.HTTP_409_CONFLICT


@contextmanager
def refusing() -> Iterator[None]:
    """What makes no sense in the conversation as it is answers 409, with the reason."""
    try:
        yield
    except Refused as refused:
        raise Conflict(str(refused)) from refused


def session_to_speak_in(request, pk) -> Session:
    """The session `pk` that the user may write to. Raises Http404, or Conflict when nothing is
    said in it.
    """
    session = access.session_for_writing(request.user, pk, request.auth)
    refuse_closed(session)
    return session


def refuse_notes(session: Session) -> None:
    if session.is_notes:
        raise Conflict("Notes are not answered.")


def refuse_closed(session: Session) -> None:
    refuse_notes(session)
    if session.status == SessionStatus.CLOSED:
        raise Conflict("This session is closed. Set its status to active to go on.")


def answer(request, asked: Message, reply: Message):
    """Has `reply` said: streamed to who accepts events, else awaited to its end."""
    if _wants_events(request):
        streaming.say(reply)
        return streaming.event_stream(reply, asked, streaming.data_for(request.user))
    return exchange(request, asked, streaming.say_to_the_end(reply))


def _wants_events(request) -> bool:
    types = ["application/json", streaming.MEDIA_TYPE]
    return request.get_preferred_type(types) == streaming.MEDIA_TYPE


def exchange(request, message: Message, reply: Message | None) -> Response:
    """A message and the reply to it, None when none was asked for."""
    told = ExchangeSerializer(
        {"message": message, "reply": reply}, context={"reader": request.user}
    )
    return Response(told.data, status.HTTP_201_CREATED)
