"""/v1/chat/completions and /v1/models."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.db import connections
from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import changes, keyed, passing, sight, streams, tokens
from chat.admission import Grant
from chat.api.completions import answers, errors, messages, requests
from chat.api.completions.answers import Envelope
from chat.api.completions.errors import Refused
from chat.api.completions.images import Images
from chat.api.streaming import MEDIA_TYPE
from chat.keyed import Keyed
from chat.models import Message, Role
from chat.options import Options
from chat.prompt import REPLY_SHARE, context_tokens
from chat.requested import Told
from chat.sections import SHARE_FOR_PROGRAM
from chat.storable import storable
from chat.streams import Live
from projects import access
from projects.access import WRITERS, projects_for
from projects.models import Project


@extend_schema(exclude=True)
class Door(APIView):
    """What every route here stands on: tokens and throttles are those of the REST API."""

    def handle_exception(self, exc: Exception) -> Response:
        return errors.reshaped(exc, super().handle_exception(exc))


class Models(Door):
    """One model for each project that the token opens."""

    def get(self, request) -> Response:
        found = projects_for(request.user, request.auth)
        return Response({"object": "list", "data": [_told(project) for project in found]})


class OneModel(Door):
    def get(self, request, name: str) -> Response:
        return Response(_told(_project(request, name)))


def _told(project: Project) -> dict[str, Any]:
    return {
        "id": project.slug,
        "object": "model",
        "created": int(project.created_at.timestamp()),
        "owned_by": "strata",
        "name": project.name,
    }


def _project(request, name: str) -> Project:
    try:
        return access.project_for_reading(request.user, storable(name), request.auth)
    except Http404 as error:
        raise errors.unknown_model(name) from error


def _project_to_speak_in(request, name: str) -> Project:
    """An answer costs money and may be remembered: it takes who may write."""
    project = _project(request, name)
    if access.membership(request.user, project.slug, token=request.auth).role not in WRITERS:
        raise Refused(
            "Viewers of a project read it, and are not answered there.",
            "model",
            "insufficient_permissions",
            status.HTTP_403_FORBIDDEN,
        )
    return project


class Completions(Door):
    """An answer, with the project's memory, in a conversation that is kept or to nobody else."""

    rate = "replies"

    def post(self, request):
        asked = requests.checked(request.data)
        key = requests.key_of(request)
        project = _project_to_speak_in(request, asked["model"])
        read = messages.read(asked["messages"])
        options = requests.options(asked, read.system, project.chat_model_name)
        _refuse_long_system(read.system, project)
        images = Images()
        reply = _continued(Keyed(project, request.user, key), read.told, images) if key else None
        name = reply.pk.hex if reply else uuid4().hex
        usage = asked.get("stream_options", {}).get("include_usage", False)
        envelope = Envelope.made(name, project.slug, usage)
        if reply is not None:
            beginning = streams.start(reply, options)
        else:
            beginning = _passing(request.user, project, key, read.told, images, options)
        # What follows may take minutes.
        connections.close_all()
        end = reply is None
        if asked.get("stream"):
            grant = Grant.of(request, reply.session if reply else project)
            return _streamed(envelope, async_to_sync(_begun)(beginning, end), end, grant)
        return Response(answers.completion(envelope, async_to_sync(_whole)(beginning, end)))


def _continued(keyed_by: Keyed, told: Sequence[Told], images: Images) -> Message | None:
    """The reply to what is new in the conversation of that key, None when nothing is."""
    if not told or told[-1].role not in (Role.USER, Role.TOOL):
        return None
    images.load(told[-1].images)
    session = keyed_by.session()
    meant = keyed.planned(session, told, images.loaded)
    if meant is None:
        return None
    if not (told[-1].text.strip() or told[-1].images or told[-1].answers):
        raise Refused("The last message says nothing.", f"messages[{len(told) - 1}].content")
    if isinstance(meant, keyed.Onward):
        images.load(address for one in told[meant.start :] for address in one.images)
    try:
        return keyed.go_on(keyed_by, told, images.loaded)
    except changes.Refused as refused:
        raise Refused(str(refused), None, "session_closed") from refused


def _passing(
    user, project: Project, key: str, told: Sequence[Told], images: Images, options: Options
):
    """The answer to a request that stands for itself, about to begin."""
    addresses = [address for one in told for address in one.images]
    images.load(addresses[-sight.MOST_IMAGES :])
    session = Keyed(project, user, key).session() if key else None
    turn = passing.turn_of(project, user, told, images.loaded, options.system, session)
    return streams.pass_on(passing.answer(turn, options))


def _refuse_long_system(system: str, project: Project) -> None:
    budget = context_tokens(project.chat_model_name) * (1 - REPLY_SHARE)
    size, most = tokens.count(system), int(budget * SHARE_FOR_PROGRAM)
    if size > most:
        reason = f"The system message has {size} tokens, and {most} is the most that fits here."
        raise Refused(reason, "messages", "context_length_exceeded")


async def _begun(beginning, end: bool) -> Live:
    """The answer with its first words there, or what stands in their place."""
    return await _heard(beginning, end, lambda live: bool(live.text))


async def _whole(beginning, end: bool) -> Live:
    return await _heard(beginning, end, lambda live: False)


async def _heard(beginning, end: bool, enough) -> Live:
    """The answer once it is said, or there is `enough` of it. One that nobody keeps ends with its
    listener.
    """
    live: Live = await beginning
    try:
        while not (live.done or enough(live)):
            await live.bell.wait()
    except asyncio.CancelledError:
        if end:
            live.stop()
        raise
    return live


def _streamed(envelope: Envelope, live: Live, end: bool, grant: Grant) -> StreamingHttpResponse:
    """Raises Refused when the answer failed before its first word."""
    if live.failure is not None and not live.text:
        raise errors.failed(live.failure)
    return StreamingHttpResponse(
        answers.chunks(envelope, live, end, grant),
        content_type=f"{MEDIA_TYPE}; charset=utf-8",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )
