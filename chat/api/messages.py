"""/api/v1/…/messages/: what was said, and what becomes of it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import access, changes, replies, streams
from chat.api.answering import (
    EXCHANGE,
    Conflict,
    answer,
    answer_again,
    recorded,
    refuse_closed,
    refusing,
    session_to_speak_in,
)
from chat.api.attachments import stored
from chat.api.resuming import LAST_EVENT_ID
from chat.api.serializers import (
    ContentSerializer,
    EmojiSerializer,
    MessageSerializer,
    NewMessageSerializer,
    ReactionSerializer,
    ReceiptSerializer,
    RevisionSerializer,
    SessionSerializer,
    StaleSerializer,
)
from chat.api.sessions import tell
from chat.attachments import Refused, claim
from chat.models import Message, MessageRevision, Role, Session, Status
from projects.api.errors import CONFLICT
from projects.api.filters import Whole
from projects.api.idempotency import idempotent
from projects.api.pagination import NewestFirst
from projects.api.versions import Tagged, asked_version, etag, tag


class OldestFirst(NewestFirst):
    """By place in the conversation."""

    ordering = "seq"
    position = int


class MessageFilter(filters.FilterSet):
    role = filters.ChoiceFilter(choices=Role.choices)
    status = filters.ChoiceFilter(choices=Status.choices)
    after = Whole("seq", "gt", help_text="Only what stands after this place.")


class Messages(generics.ListAPIView):
    """What was said in a conversation, in order."""

    queryset = Message.objects.none()
    serializer_class = MessageSerializer
    pagination_class = OldestFirst
    filterset_class = MessageFilter
    orderings = {"seq": int, "-seq": int}

    @property
    def rate(self) -> str | None:
        data = self.request.data
        recorded = isinstance(data, Mapping) and data.get("reply") is False
        return None if recorded else "replies"

    def get_queryset(self) -> QuerySet[Message]:
        request = self.request
        session = access.session_for_reading(request.user, self.kwargs["pk"], request.auth)
        return session.messages.select_related("author")

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"reader": self.request.user}

    @extend_schema(request=NewMessageSerializer, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(answer_again)
    def post(self, request, pk):
        """Says something. The reply is awaited, or streamed as events when that is accepted."""
        session = session_to_speak_in(request, pk)
        said = NewMessageSerializer(data=request.data)
        said.is_valid(raise_exception=True)
        data = said.validated_data
        images = stored(session, request.user, data.pop("attachments"))
        try:
            if not data["reply"]:
                return recorded(request, _record(session, request.user, images, **data))
            asked, reply = replies.ask(session, data["content"], request.user, images)
        except Refused as refused:
            raise ValidationError({"attachments": [str(refused)]}) from refused
        return answer(request, asked, reply)


@transaction.atomic
def _record(
    session: Session, user, images: list[UUID], content: str, author: str = "", **fields
) -> Message:
    """Writes down what was said elsewhere; a user's message without an author is `user`'s own."""
    fields.pop("reply")
    own = not author and fields.get("role", Role.USER) == Role.USER
    message = replies.post_message(
        session, content, author=user if own else None, author_name=author, **fields
    )
    claim(message, images, user)
    return message


STALE = {412: StaleSerializer} | CONFLICT


class OneMessage(Tagged, APIView):
    """One message. Its author and the project's owners change what a person said; any writer
    changes what the assistant said.
    """

    @extend_schema(responses=MessageSerializer)
    def get(self, request, pk) -> Response:
        return _tell(request, access.message_for_reading(request.user, pk, request.auth))

    @extend_schema(
        request=ContentSerializer,
        responses={200: MessageSerializer} | STALE,
    )
    def patch(self, request, pk) -> Response:
        """Gives it another text; the one before stays among its revisions."""
        message = access.message_for_changing(request.user, pk, request.auth)
        said = ContentSerializer(data=request.data, context={"message": message})
        said.is_valid(raise_exception=True)
        content, version = said.validated_data["content"], asked_version(request)
        try:
            with refusing():
                edited = changes.edit(message, content, request.user, version)
        except changes.Stale as stale:
            return _stale(request, stale)
        return _tell(request, edited)

    @extend_schema(responses={204: None} | STALE)
    def delete(self, request, pk) -> Response:
        """Takes it out of prompts, memory and search; its place stays, empty."""
        message = access.message_for_changing(request.user, pk, request.auth)
        try:
            with refusing():
                gone = changes.delete(message, asked_version(request))
        except changes.Stale as stale:
            return _stale(request, stale)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=etag(gone.version))


def _told(request, message: Message) -> dict[str, object]:
    return MessageSerializer(message, context={"reader": request.user}).data


def _tell(request, message: Message, code: int = status.HTTP_200_OK) -> Response:
    told = _told(request, message)
    return Response(told, code, headers={"ETag": tag(told)})


def _stale(request, stale: changes.Stale) -> Response:
    told: dict[str, Any] = {"detail": str(stale), "message": _told(request, stale.message)}
    headers = {"ETag": tag(told["message"])}
    return Response(told, status.HTTP_412_PRECONDITION_FAILED, headers=headers)


class Reactions(APIView):
    """The emoji under a message: each user gives each of them once."""

    @extend_schema(responses=ReactionSerializer(many=True))
    def get(self, request, pk) -> Response:
        message = access.message_for_reading(request.user, pk, request.auth)
        return Response(_told(request, message)["reactions"])

    @extend_schema(request=EmojiSerializer, responses={201: ReactionSerializer(many=True)})
    def post(self, request, pk) -> Response:
        """Gives yours. To give it twice changes nothing."""
        return self._react(request, pk, request.data, True, status.HTTP_201_CREATED)

    @extend_schema(
        parameters=[OpenApiParameter("emoji", str, required=True)],
        responses={200: ReactionSerializer(many=True)},
    )
    def delete(self, request, pk) -> Response:
        """Takes yours back, if it is there."""
        return self._react(request, pk, request.query_params, False, status.HTTP_200_OK)

    def _react(self, request, pk, data, wanted: bool, code: int) -> Response:
        message = access.message_for_writing(request.user, pk, request.auth)
        given = EmojiSerializer(data=data)
        given.is_valid(raise_exception=True)
        try:
            changes.react(message, request.user, given.validated_data["emoji"], wanted)
        except changes.Refused as refused:
            raise ValidationError({"emoji": [str(refused)]}) from refused
        return Response(_told(request, message)["reactions"], code)


class Regenerate(APIView):
    """Another reply beside one that is there. From then on the new one counts."""

    rate = "replies"

    @extend_schema(request=None, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(answer_again)
    def post(self, request, pk):
        spoken = access.message_for_writing(request.user, pk, request.auth)
        refuse_closed(spoken.session)
        with refusing():
            asked, reply = changes.regenerate(spoken)
        return answer(request, asked, reply)


class Rerun(APIView):
    """Another text in place of what a person said, and the reply to it. The original and what
    followed it stay beside them, as a branch.
    """

    rate = "replies"

    @extend_schema(request=ContentSerializer, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(answer_again)
    def post(self, request, pk):
        message = access.message_for_writing(request.user, pk, request.auth)
        refuse_closed(message.session)
        said = ContentSerializer(data=request.data, context={"message": message})
        said.is_valid(raise_exception=True)
        with refusing():
            asked, reply = changes.rerun(message, said.validated_data["content"], request.user)
        return answer(request, asked, reply)


class Choose(APIView):
    """Makes the path that counts go through a message, one of several siblings."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        return tell(changes.choose(access.message_for_writing(request.user, pk, request.auth)))


class Stop(APIView):
    """Ends a reply that is being said; what was said so far stays."""

    @extend_schema(request=None, responses={202: MessageSerializer} | CONFLICT)
    def post(self, request, pk) -> Response:
        reply = access.message_for_writing(request.user, pk, request.auth)
        if reply.is_final:
            raise Conflict("This message is complete already.")
        async_to_sync(streams.stop)(reply.pk)
        return _tell(request, reply, status.HTTP_202_ACCEPTED)


class Receipt(APIView):
    """What stood in the prompt of a reply, by id and revision."""

    @extend_schema(responses=ReceiptSerializer)
    def get(self, request, pk) -> Response:
        message = access.message_for_reading(request.user, pk, request.auth)
        if not message.receipt:
            raise NotFound("This message has no receipt: it is no reply, or not begun.")
        return Response(message.receipt)


class LatestFirst(NewestFirst):
    """By version, the latest first."""

    ordering = "-version"
    position = int


class Revisions(generics.ListAPIView):
    """The earlier texts of a message, the latest first. Those of a deleted one are withheld."""

    queryset = MessageRevision.objects.none()
    serializer_class = RevisionSerializer
    pagination_class = LatestFirst

    def get_queryset(self) -> QuerySet[MessageRevision]:
        request = self.request
        message = access.message_for_reading(request.user, self.kwargs["pk"], request.auth)
        if message.deleted_at is not None:
            return self.queryset
        return message.revisions.select_related("edited_by")
