"""/api/v1/…/sessions/, their messages, and what stands in their prompts."""

from django.db import transaction
from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import APIException
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import access, prompt, replies
from chat.api import streaming
from chat.api.serializers import (
    ExchangeSerializer,
    MessageSerializer,
    NewMessageSerializer,
    PromptSerializer,
    SessionSerializer,
)
from chat.models import Message, Role, Session
from chat.models.sessions import SessionStatus
from chat.signals import session_deleted
from projects.access import project_for_owning, project_for_reading, project_for_writing
from projects.api.pagination import NewestFirst

EXCHANGE = {
    (201, "application/json"): ExchangeSerializer,
    (200, streaming.MEDIA_TYPE): OpenApiTypes.STR,
}


class Conflict(APIException):
    status_code = status.HTTP_409_CONFLICT


def _session_to_speak_in(request, pk) -> Session:
    """The session `pk` that the user may write to. Raises Http404, or Conflict when closed."""
    session = access.session_for_writing(request.user, pk, request.auth)
    _refuse_closed(session)
    return session


def _refuse_closed(session: Session) -> None:
    if session.status == SessionStatus.CLOSED:
        raise Conflict("This session is closed. Set its status to active to go on.")


class Sessions(generics.ListCreateAPIView):
    """The conversations of a project that you may see: the shared ones and your own."""

    queryset = Session.objects.none()
    serializer_class = SessionSerializer

    def get_queryset(self) -> QuerySet[Session]:
        user, token = self.request.user, self.request.auth
        project = project_for_reading(user, self.kwargs["slug"], token)
        shown = access.sessions_for(user, token).filter(project=project)
        related = shown.select_related("project", "creator", "cursor", "head")
        return related.defer("project__instructions", "head__text", "head__receipt")

    def create(self, request, *args, **kwargs) -> Response:
        self.project = project_for_writing(request.user, kwargs["slug"], request.auth)
        return super().create(request, *args, **kwargs)

    def perform_create(self, serializer) -> None:
        serializer.save(project=self.project, creator=self.request.user)


class OneSession(generics.RetrieveUpdateDestroyAPIView):
    """One conversation. Its creator and the project's owners change and delete it."""

    serializer_class = SessionSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Session:
        find = _session_to_read if self.request.method in SAFE_METHODS else _session_to_manage
        return find(self.request, self.kwargs["pk"])

    @transaction.atomic
    def perform_destroy(self, instance: Session) -> None:
        session_deleted.send(sender=Session, session=instance)
        instance.delete()


def _session_to_read(request, pk) -> Session:
    return access.session_for_reading(request.user, pk, request.auth)


def _session_to_manage(request, pk) -> Session:
    session = _session_to_read(request, pk)
    if session.creator_id != request.user.pk:
        project_for_owning(request.user, session.project.slug, request.auth)
    return session


class Close(APIView):
    """Ends a conversation; a PATCH of its status to active opens it again."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        session = _session_to_manage(request, pk)
        closing = SessionSerializer(session, data={"status": SessionStatus.CLOSED}, partial=True)
        closing.is_valid(raise_exception=True)
        closing.save()
        return Response(closing.data)


class OldestFirst(NewestFirst):
    """By place in the conversation."""

    ordering = "seq"
    position = int


class DataOrEvents(DefaultContentNegotiation):
    """Answers and errors are JSON. A stream of events is asked for by the same header, but is no
    rendering of an answer, so that asking for it is never “not acceptable”.
    """

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


def _wants_events(request) -> bool:
    types = ["application/json", streaming.MEDIA_TYPE]
    return request.get_preferred_type(types) == streaming.MEDIA_TYPE


class Messages(generics.ListAPIView):
    """What was said in a conversation, in order."""

    queryset = Message.objects.none()
    serializer_class = MessageSerializer
    pagination_class = OldestFirst
    content_negotiation_class = DataOrEvents

    def get_queryset(self) -> QuerySet[Message]:
        session = _session_to_read(self.request, self.kwargs["pk"])
        return session.messages.select_related("author")

    @extend_schema(request=NewMessageSerializer, responses=EXCHANGE)
    def post(self, request, pk):
        """Says something. The reply is awaited, or streamed as events when that is accepted."""
        session = _session_to_speak_in(request, pk)
        said = NewMessageSerializer(data=request.data)
        said.is_valid(raise_exception=True)
        if not said.validated_data["reply"]:
            return _exchange(_record(session, request.user, **said.validated_data), None)
        asked, reply = replies.ask(session, said.validated_data["content"], request.user)
        return _answer(request, asked, reply)


class Regenerate(APIView):
    """Another reply beside one that is there. From then on the new one counts."""

    content_negotiation_class = DataOrEvents

    @extend_schema(request=None, responses=EXCHANGE)
    def post(self, request, pk):
        spoken = access.message_for_writing(request.user, pk, request.auth)
        _refuse_closed(spoken.session)
        if not spoken.is_final:
            raise Conflict("This reply is still being said.")
        asked = spoken.parent
        if spoken.role != Role.ASSISTANT or asked is None or asked.role != Role.USER:
            raise Conflict("Only the reply to a message can be generated again.")
        asked.session = spoken.session
        return _answer(request, asked, replies.begin_reply(asked))


def _record(session: Session, user, content: str, author: str = "", **fields) -> Message:
    """Writes down what was said elsewhere; a user's message without an author is `user`'s own."""
    fields.pop("reply")
    own = not author and fields.get("role", Role.USER) == Role.USER
    return replies.post_message(
        session, content, author=user if own else None, author_name=author, **fields
    )


def _answer(request, asked: Message, reply: Message):
    """Has `reply` said: streamed to who accepts events, else awaited to its end."""
    if _wants_events(request):
        streaming.say(reply)
        return streaming.event_stream(reply, asked)
    return _exchange(asked, streaming.say_to_the_end(reply))


def _exchange(message: Message, reply: Message | None) -> Response:
    exchange = ExchangeSerializer({"message": message, "reply": reply})
    return Response(exchange.data, status.HTTP_201_CREATED)


class Prompt(APIView):
    """What the next reply would be told, with `content` as the message it answers."""

    @extend_schema(
        parameters=[OpenApiParameter("content", str, description="What would be said now.")],
        responses=PromptSerializer,
    )
    def get(self, request, pk) -> Response:
        session = _session_to_read(request, pk)
        content = request.query_params.get("content", "").strip()
        return Response(PromptSerializer(prompt.preview(session, content, request.user)).data)


urlpatterns = [
    path("projects/<slug:slug>/sessions/", Sessions.as_view(), name="api-sessions"),
    path("sessions/<uuid:pk>/", OneSession.as_view(), name="api-session"),
    path("sessions/<uuid:pk>/close/", Close.as_view(), name="api-close"),
    path("sessions/<uuid:pk>/messages/", Messages.as_view(), name="api-messages"),
    path("sessions/<uuid:pk>/prompt/", Prompt.as_view(), name="api-prompt"),
    path("messages/<uuid:pk>/regenerate/", Regenerate.as_view(), name="api-regenerate"),
]
