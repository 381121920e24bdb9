"""Responses after a message was posted: the complete reply, or a stream of events."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import status
from rest_framework.response import Response

from chat import permissions
from chat.api.serializers import ExchangeSerializer, MessageSerializer
from chat.conversations.read_state import MessageRelations, siblings_of
from chat.models import Message, Session
from chat.models.sessions import SessionStatus
from chat.providers.booking import Payer
from chat.streaming import sse
from chat.streaming.poller import StreamGrant, require_free_stream
from chat.streaming.sse import END, last_event_id
from projects.api.idempotency import IdempotentResult
from projects.api.schema import CONFLICT_RESPONSE
from projects.core.errors import ConflictError

Known = Mapping[str, object]

# The schema of a single event in a stream.
EVENT = {
    "type": "object",
    "properties": {
        "event": {
            "type": "string",
            "enum": ["message", "lookups", "thinking", "delta", "done", "error"],
        },
        "id": {"type": "string"},
        "data": {"type": "string", "description": "JSON."},
    },
    "required": ["event", "data"],
}
EVENTS = OpenApiResponse(
    EVENT,
    "Server-sent events. `message`: the stored message. `lookups`: all lookups of the model so "
    "far, sent when a lookup begins or ends. `thinking` {`text`}: the next part of the model's "
    "reasoning. `delta` {`text`}: the next part of the reply. The last event is `done` with the "
    "final reply or, if it failed or is no longer available, `error` {`detail`, `id`, `reply`}. "
    "`message`, `delta` and the end of a reply have an id for Last-Event-ID. After 15 seconds "
    "without an event, a comment is sent.",
    examples=[
        OpenApiExample(
            "Events",
            'event: message\nid: 0\ndata: {"id": "…", "content": "When is the cutover?"}\n\n'
            'event: delta\nid: 11\ndata: {"text": "On 3 March."}\n\n'
            'event: done\nid: end\ndata: {"id": "…", "content": "On 3 March."}\n\n',
            media_type=sse.MEDIA_TYPE,
        )
    ],
)
# The responses in the schema. 204 means that a client that resumes has already received the end.
EXCHANGE = {
    (201, "application/json"): ExchangeSerializer,
    (200, sse.MEDIA_TYPE): EVENTS,
    204: None,
} | CONFLICT_RESPONSE


def session_for_posting(request, pk) -> Session:
    """Return the session, if the user may post to it. Raises `Http404` or `ConflictError`."""
    session = permissions.session_for_writing(request.user, pk, request.auth)
    check_open(session)
    return session


def check_is_chat(session: Session) -> None:
    """Raise `ConflictError` for a session of notes."""
    if session.is_notes:
        raise ConflictError("Notes do not get replies.")


def check_open(session: Session) -> None:
    """Raise `ConflictError` for a closed session and for a session of notes."""
    check_is_chat(session)
    if session.status == SessionStatus.CLOSED:
        raise ConflictError("This session is closed. To continue, set its status to active.")


def answer(
    request, message: Message, reply: Message, known: Known = MappingProxyType({})
) -> IdempotentResult:
    """Generate `reply`. Respond with events if the client accepts them, else once complete.

    `known` is the result of `known_of_new`.
    """
    ids = {"message": message.pk, "reply": reply.pk}
    return IdempotentResult(
        status.HTTP_201_CREATED, ids, partial(_generate, request, message, reply, known)
    )


def answer_without_reply(request, message: Message, known: Known) -> IdempotentResult:
    """Respond with a `message` that was just created without a reply."""
    ids = {"message": message.pk, "reply": None}
    respond = partial(_exchange, request, message, known=known)
    return IdempotentResult(status.HTTP_201_CREATED, ids, respond)


def known_of_new(message: Message, has_images: bool) -> Known:
    """Return the serializer's context for a new message, which has no reactions yet."""
    relations = MessageRelations(message.pk, siblings_of(message), ())
    known: dict[str, object] = {"relations": {message.pk: relations}}
    if not has_images:
        known["attachments"] = {message.pk: []}
    return known


def _generate(request, message: Message, reply: Message, known: Known) -> HttpResponseBase:
    if _wants_events(request):
        sse.start_reply(reply, Payer.of(request))
        return _stream(request, reply, message, known=known)
    grant = StreamGrant.for_request(request, reply.session)
    complete = sse.complete_reply(reply, Payer.of(request), grant)
    return _exchange(request, message, complete, known)


def repeat_answer(view, request, created: Mapping[str, Any]) -> HttpResponseBase:
    """Respond to a repeated request with the message and reply that the first request created.

    If the reply is in progress, stream it from its beginning or wait for its end.
    """
    message = _existing(request, created["message"])
    if created["reply"] is None:
        return _exchange(request, message)
    reply = _existing(request, created["reply"])
    if _wants_events(request):
        return resume_stream(request, reply, message)
    grant = StreamGrant.for_request(request, reply.session)
    return _exchange(request, message, sse.complete_reply(reply, None, grant))


def _existing(request, pk) -> Message:
    message = permissions.message_for_reading(request.user, pk, request.auth)
    if message.deleted_at is not None:
        raise Http404
    return message


def resume_stream(request, reply: Message, message: Message | None = None) -> HttpResponseBase:
    """Stream `message` (if given) and `reply`, from the position in the request's Last-Event-ID.

    Raises `TooManyStreamsError`.
    """
    require_free_stream(StreamGrant.for_request(request, reply.session))
    position = last_event_id(request)
    if position == END:
        return Response(status=status.HTTP_204_NO_CONTENT)
    return _stream(request, reply, message, position)


def _stream(
    request,
    reply: Message,
    message: Message | None,
    position: int | None = None,
    known: Known = MappingProxyType({}),
) -> HttpResponseBase:
    grant = StreamGrant.for_request(request, reply.session)

    def render(message: Message) -> object:
        return MessageSerializer(message, context={"reader": request.user, **known}).data

    return sse.event_stream(reply, grant, render, message, position=position)


def _wants_events(request) -> bool:
    types = ["application/json", sse.MEDIA_TYPE]
    return request.get_preferred_type(types) == sse.MEDIA_TYPE


def _exchange(
    request, message: Message, reply: Message | None = None, known: Known = MappingProxyType({})
) -> Response:
    data = {
        name: one and MessageSerializer(one, context={"reader": request.user, **known}).data
        for name, one in (("message", message), ("reply", reply))
    }
    return Response(data, status.HTTP_201_CREATED)
