"""How the API answers when a reply is awaited, and when something cannot be done."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from chat import access
from chat.admission import Grant
from chat.api import streaming
from chat.api.resuming import END, last_event
from chat.api.serializers import ExchangeSerializer
from chat.changes import Refused
from chat.models import Message, Session
from chat.models.sessions import SessionStatus
from projects.api.errors import CONFLICT
from projects.api.idempotency import Made

# One of the events of a stream.
EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["message", "delta", "done", "error"]},
        "id": {"type": "string"},
        "data": {"type": "string", "description": "JSON."},
    },
    "required": ["event", "data"],
}
EVENTS = OpenApiResponse(
    EVENT,
    "Server-sent events. `message`: what was said, as it is kept. `delta` {`text`}: a piece of the "
    "reply, as often as there are more. At the end `done`: the whole reply; or, when the model "
    "failed, `error` {`detail`, `id`, `reply`}. Each carries an id for Last-Event-ID; a comment "
    "comes after 15 seconds of silence.",
    examples=[
        OpenApiExample(
            "Events",
            'event: message\nid: 0\ndata: {"id": "…", "content": "When is the cutover?"}\n\n'
            'event: delta\nid: 9\ndata: {"text": "On 3 March."}\n\n'
            'event: done\nid: end\ndata: {"id": "…", "content": "On 3 March."}\n\n',
            media_type=streaming.MEDIA_TYPE,
        )
    ],
)
# What a route that answers tells of itself in the schema. 204: who comes back heard the end.
EXCHANGE = {
    (201, "application/json"): ExchangeSerializer,
    (200, streaming.MEDIA_TYPE): EVENTS,
    204: None,
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


def answer(request, asked: Message, reply: Message) -> Made:
    """Has `reply` said: streamed to who accepts events, else awaited to its end."""
    return _made(asked, reply, partial(_say, request, asked, reply))


def recorded(request, message: Message) -> Made:
    """As `answer`, where no reply was asked for."""
    return _made(message, None, partial(exchange, request, message, None))


def _made(message: Message, reply: Message | None, tell) -> Made:
    ids = {"message": message.pk, "reply": reply and reply.pk}
    return Made(status.HTTP_201_CREATED, ids, tell)


def _say(request, asked: Message, reply: Message) -> HttpResponseBase:
    if _wants_events(request):
        streaming.say(reply)
        return _stream(request, reply, asked)
    return exchange(request, asked, streaming.say_to_the_end(reply))


def answer_again(view, request, made: Mapping[str, Any]) -> HttpResponseBase:
    """Tells of a message and the reply to it once more: a reply that is still being said is
    followed from its beginning, or awaited to its end.
    """
    asked = _standing(request, made["message"])
    if made["reply"] is None:
        return exchange(request, asked, None)
    reply = _standing(request, made["reply"])
    if _wants_events(request):
        return go_on(request, reply, asked)
    return exchange(request, asked, streaming.hear_to_the_end(reply))


def _standing(request, pk) -> Message:
    message = access.message_for_reading(request.user, pk, request.auth)
    if message.deleted_at is not None:
        raise Http404
    return message


def go_on(request, reply: Message, asked: Message | None = None) -> HttpResponseBase:
    """`reply` as events, after `asked`, or from where the reader left it."""
    position = last_event(request)
    if position == END:
        return Response(status=status.HTTP_204_NO_CONTENT)
    return _stream(request, reply, asked, position)


def _stream(
    request, reply: Message, asked: Message | None, position: int | None = None
) -> HttpResponseBase:
    grant, render = Grant.of(request, reply.session), streaming.data_for(request.user)
    return streaming.event_stream(reply, grant, asked, render, position=position)


def _wants_events(request) -> bool:
    types = ["application/json", streaming.MEDIA_TYPE]
    return request.get_preferred_type(types) == streaming.MEDIA_TYPE


def exchange(request, message: Message, reply: Message | None) -> Response:
    """A message and the reply to it, None when none was asked for."""
    told = ExchangeSerializer(
        {"message": message, "reply": reply}, context={"reader": request.user}
    )
    return Response(told.data, status.HTTP_201_CREATED)
