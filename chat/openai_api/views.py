"""Views of /v1/chat/completions and /v1/models."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.db import connections
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Message, Role, Session
from chat.openai_api import responses, schemas, sessions, stateless
from chat.openai_api.errors import to_openai_response
from chat.openai_api.images import ImageLoader
from chat.openai_api.responses import ResponseEnvelope
from chat.openai_api.sessions import SessionKey
from chat.openai_api.transcript import TranscriptMessage, parse_transcript
from chat.prompt import history
from chat.prompt.builder import REPLY_SHARE, context_tokens
from chat.prompt.sections import CLIENT_SYSTEM_SHARE
from chat.providers import ReplyOptions, limits
from chat.providers.booking import Payer
from chat.streaming import live_replies
from chat.streaming.live_replies import LiveReply
from chat.streaming.poller import StreamGrant, withdrawn_grants
from chat.streaming.sse import ACCESS_WITHDRAWN, MEDIA_TYPE
from projects import permissions
from projects.core import token_counting
from projects.core.errors import InvalidInputError, NotAllowedError, NotFoundError
from projects.core.text import storable
from projects.models import Membership, Project
from projects.permissions import WRITERS, projects_for

# A stream begins after this time at the latest, because proxies and clients wait for the first byte
# for a minute or less. Until then, an error of the model gets an HTTP status.
FIRST_BYTE_TIMEOUT_S = 15.0

StartingReply = Coroutine[Any, Any, LiveReply]


@extend_schema(exclude=True)
class OpenAIView(APIView):
    """Base class of the views. They use the tokens and rate limits of the REST API."""

    def handle_exception(self, exc: Exception) -> Response:
        return to_openai_response(exc, super().handle_exception(exc))


class ModelListView(OpenAIView):
    """Lists one model for each active project that the token may use."""

    def get(self, request) -> Response:
        projects = projects_for(request.user, request.auth).filter(archived_at=None)
        return Response({"object": "list", "data": [_model_data(it) for it in projects]})


class ModelDetailView(OpenAIView):
    def get(self, request, name: str) -> Response:
        project = _get_membership(request, name).project
        if project.is_archived:
            # The list leaves it out, too.
            raise _unknown_model(name)
        return Response(_model_data(project))


def _model_data(project: Project) -> dict[str, Any]:
    return {
        "id": project.slug,
        "object": "model",
        "created": int(project.created_at.timestamp()),
        "owned_by": "strata",
        "name": project.name,
    }


def _get_membership(request, name: str) -> Membership:
    try:
        return permissions.membership(request.user, storable(name), token=request.auth)
    except Http404 as error:
        raise _unknown_model(name) from error


def _unknown_model(name: str) -> NotFoundError:
    message = f"The model `{name}` does not exist or you do not have access to it."
    return NotFoundError(message, code="model_not_found", field="model")


def _get_writable_project(request, name: str) -> Project:
    """Return the project if the user may write: a reply costs money and may be remembered."""
    member = _get_membership(request, name)
    if member.role not in WRITERS:
        raise NotAllowedError(
            "Viewers of a project can read it, but get no replies.",
            code="insufficient_permissions",
            field="model",
        )
    return permissions.require_active(member.project)


class ChatCompletionView(OpenAIView):
    """Replies with the project's memory, in a stored session or without storing messages."""

    rate = "replies"

    def post(self, request):
        params = schemas.validate_request(request.data)
        name = schemas.session_name(request)
        project = _get_writable_project(request, params["model"])
        limits.require_within_limits(project, Payer.of(request))
        transcript = parse_transcript(params["messages"])
        key = SessionKey(project, request.user, name) if name else None
        session = key.find_session() if key else None
        model = session.chat_model_name if session else project.chat_model_name
        options = schemas.reply_options(params, transcript.system, model)
        _check_system_length(transcript.system, model)
        images = ImageLoader()
        reply = _begin_stored_reply(key, session, transcript.messages, images) if key else None
        envelope = ResponseEnvelope.create(
            reply.pk.hex if reply else uuid4().hex,
            project.slug,
            bool(params.get("stream_options", {}).get("include_usage")),
        )
        if reply is not None:
            starting = live_replies.start(reply, Payer.of(request), options)
        else:
            starting = _start_stateless_reply(
                request, project, session, transcript.messages, images, options
            )
        # Release the connections, because the reply may take minutes.
        connections.close_all()
        # Stop an unstored reply when the client disconnects, because nobody can read it later.
        stop_on_close = reply is None
        grant = StreamGrant.for_request(request, reply.session if reply else project)
        if params.get("stream"):
            live = async_to_sync(_wait_for)(
                starting, stop_on_close, _has_begun, FIRST_BYTE_TIMEOUT_S
            )
            return _stream_response(envelope, live, stop_on_close, grant)
        live = async_to_sync(_wait_for)(starting, stop_on_close, lambda live: False)
        if withdrawn_grants([grant]):
            raise AuthenticationFailed(ACCESS_WITHDRAWN)
        return Response(responses.completion(envelope, live))


def _begin_stored_reply(
    key: SessionKey,
    session: Session | None,
    transcript: Sequence[TranscriptMessage],
    images: ImageLoader,
) -> Message | None:
    """Return the pending reply in the session, or None if the request does not continue it."""
    if not transcript or transcript[-1].role not in (Role.USER, Role.TOOL):
        return None
    last = transcript[-1]
    images.load(last.images)
    match = sessions.match_request(session, transcript, images.loaded)
    if match is None:
        return None
    if not (last.text.strip() or last.images or last.tool_call_id):
        position = f"messages[{len(transcript) - 1}].content"
        raise InvalidInputError("The last message is empty.", field=position)
    if isinstance(match, sessions.Continuation):
        # Only the newest, as in a prompt: decoding all that fit into a request could take hours.
        urls = [url for message in transcript[match.start :] for url in message.images]
        images.load(urls[-history.MAX_IMAGES :])
    return sessions.continue_session(key, transcript, images.loaded, match)


def _start_stateless_reply(
    request,
    project: Project,
    session: Session | None,
    transcript: Sequence[TranscriptMessage],
    images: ImageLoader,
    options: ReplyOptions,
) -> StartingReply:
    urls = [url for message in transcript for url in message.images]
    images.load(urls[-history.MAX_IMAGES :])
    turn = stateless.stateless_turn(
        project, request.user, transcript, images.loaded, options.system, session
    )
    return live_replies.start_unstored(stateless.stream_answer(turn, options, Payer.of(request)))


def _check_system_length(system: str, model: str) -> None:
    budget = context_tokens(model) * (1 - REPLY_SHARE)
    tokens, limit = token_counting.count(system), int(budget * CLIENT_SYSTEM_SHARE)
    if tokens > limit:
        reason = f"The system message has {tokens} tokens; this model takes at most {limit}."
        raise InvalidInputError(reason, code="context_length_exceeded", field="messages")


def _has_begun(live: LiveReply) -> bool:
    """Return whether there is something to stream. Lookups and reasoning count, because they can
    take longer than a proxy waits for the first byte.
    """
    return bool(live.text or live.lookups or live.thinking)


async def _wait_for(
    starting: StartingReply,
    stop_on_cancel: bool,
    is_enough: Callable[[LiveReply], bool],
    timeout_s: float | None = None,
) -> LiveReply:
    """Wait until the reply is complete, `is_enough` returns true or the time is over; return it."""
    live = await starting
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not (live.done or is_enough(live)):
                    await live.changed.wait()
    except asyncio.CancelledError:
        if stop_on_cancel:
            live.stop()
        raise
    return live


def _stream_response(
    envelope: ResponseEnvelope, live: LiveReply, stop_on_close: bool, grant: StreamGrant
) -> StreamingHttpResponse:
    """Return the event stream. Raises `ProviderError` if the reply has failed without any text."""
    if live.failure is not None and not live.text:
        raise live.failure
    return StreamingHttpResponse(
        responses.stream_chunks(envelope, live, stop_on_close, grant),
        content_type=f"{MEDIA_TYPE}; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
