"""/api/v1/…/messages/: messages, their replies, revisions and reactions."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import permissions
from chat.api.answering import (
    EVENTS,
    EXCHANGE,
    answer,
    answer_without_reply,
    check_open,
    known_of_new,
    repeat_answer,
    resume_stream,
    session_for_posting,
)
from chat.api.attachments import store_images
from chat.api.prompts import ReceiptSerializer
from chat.api.serializers import (
    ContentSerializer,
    EmojiSerializer,
    MessageSerializer,
    NewMessageSerializer,
    ReactionSerializer,
    RegenerateSerializer,
    RevisionSerializer,
    SessionSerializer,
    StaleSerializer,
)
from chat.api.sessions import session_response
from chat.attachments import ImageRejectedError, claim_uploads
from chat.conversations import edits, messages
from chat.models import Message, MessageRevision, Role, Session, Status
from chat.providers import limits
from chat.providers.booking import Payer
from chat.streaming import live_replies
from chat.streaming.sse import LAST_EVENT_ID, MEDIA_TYPE
from projects.api.idempotency import idempotent
from projects.api.schema import CONFLICT_RESPONSE
from projects.core.api.etags import ETagMixin, entity_tag, etag_header, if_match_version
from projects.core.api.filters import FlagFilter, WholeNumberFilter
from projects.core.api.json import validated
from projects.core.api.pagination import NewestFirstPagination
from projects.core.errors import ConflictError


class MessagePagination(NewestFirstPagination):
    """Pages by position in the conversation, the oldest first."""

    ordering = "seq"
    position = int


class MessageFilter(filters.FilterSet):
    role = filters.ChoiceFilter(choices=Role.choices)
    status = filters.ChoiceFilter(choices=Status.choices)
    after = WholeNumberFilter("seq", "gt", help_text="Only messages after this position.")
    active = FlagFilter(
        method="filter_active", help_text="Only messages of the active path, or only the others."
    )

    def filter_active(self, messages: QuerySet[Message], _: str, is_active: bool) -> QuerySet:
        session = Session.objects.get(pk=self.request.parser_context["kwargs"]["pk"])
        path = Message.objects.path_to(session, session.head_id, session.last_seq).values("pk")
        return messages.filter(pk__in=path) if is_active else messages.exclude(pk__in=path)


class MessageListView(generics.ListAPIView):
    """The messages of all branches of a conversation, in order. A deleted message has no content.
    If the conversation was cleared, the list begins with the first message after the clearing.
    """

    queryset = Message.objects.none()
    serializer_class = MessageSerializer
    pagination_class = MessagePagination
    filterset_class = MessageFilter
    orderings = {"seq": int, "-seq": int}

    @property
    def rate(self) -> str | None:
        data = self.request.data
        without_reply = isinstance(data, Mapping) and data.get("reply") is False
        return None if without_reply else "replies"

    def get_queryset(self) -> QuerySet[Message]:
        request = self.request
        session = permissions.session_for_reading(request.user, self.kwargs["pk"], request.auth)
        return session.messages.filter(seq__gt=session.cleared_through).select_related("author")

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"reader": self.request.user}

    @extend_schema(request=NewMessageSerializer, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(repeat_answer)
    def post(self, request, pk):
        """Post a message.

        The response is sent when the reply is complete, or streams it as server-sent events if the
        client accepts `text/event-stream`.
        """
        session = session_for_posting(request, pk)
        data = validated(NewMessageSerializer, request.data)
        uploads = data.pop("attachments")
        if data["reply"]:
            limits.require_within_limits(session.project, Payer.of(request))
        try:
            images = store_images(session, request.user, uploads) if uploads else []
            if not data["reply"]:
                message = _record(session, request.user, images, **data)
                return answer_without_reply(request, message, known_of_new(message, bool(images)))
            message, reply = messages.ask(session, data["content"], request.user, images)
        except ImageRejectedError as error:
            raise ValidationError({"attachments": [str(error)]}) from error
        return answer(request, message, reply, known_of_new(message, bool(images)))


def _record(
    session: Session, user, images: list[UUID], content: str, author: str = "", **fields
) -> Message:
    """Store a message that `user` recorded, without a reply. `author` is the speaker if given.

    Forgetting all text of `user` includes the message.
    """
    fields.pop("reply")
    # Without images, the transaction of `post_message` is enough.
    with transaction.atomic() if images else nullcontext():
        message = messages.post_message(session, content, author=user, author_name=author, **fields)
        claim_uploads(message, images, user)
    return message


STALE = {412: StaleSerializer} | CONFLICT_RESPONSE


class MessageDetailView(ETagMixin, APIView):
    """One message. Its author and the project's owners may change it; any writer may change a
    message of the assistant.
    """

    @extend_schema(responses=MessageSerializer)
    def get(self, request, pk) -> Response:
        return _message_response(
            request, permissions.message_for_reading(request.user, pk, request.auth)
        )

    def represent_current(self, error: edits.StaleMessageError) -> dict[str, Any]:  # type: ignore[override]
        return {"message": _message_data(self.request, error.current)}

    @extend_schema(request=ContentSerializer, responses={200: MessageSerializer} | STALE)
    def patch(self, request, pk) -> Response:
        """Replace the text; the previous one is stored as a revision."""
        message = permissions.message_for_changing(request.user, pk, request.auth)
        content = validated(ContentSerializer, request.data, message=message)["content"]
        version = if_match_version(request)
        edited = edits.edit(message, content, request.user, version)
        return _message_response(request, edited)

    @extend_schema(responses={204: None} | STALE)
    def delete(self, request, pk) -> Response:
        """Remove the text from prompts, memory and search; the empty message stays."""
        message = permissions.message_for_changing(request.user, pk, request.auth)
        deleted = edits.delete(message, if_match_version(request))
        return Response(status=status.HTTP_204_NO_CONTENT, headers=etag_header(deleted.version))


def _message_data(request, message: Message) -> dict[str, object]:
    return MessageSerializer(message, context={"reader": request.user}).data


def _message_response(request, message: Message, code: int = status.HTTP_200_OK) -> Response:
    data = _message_data(request, message)
    return Response(data, code, headers={"ETag": entity_tag(data)})


class ReactionListView(APIView):
    """The emoji reactions to a message. Each user adds each emoji once."""

    @extend_schema(responses=ReactionSerializer(many=True))
    def get(self, request, pk) -> Response:
        message = permissions.message_for_reading(request.user, pk, request.auth)
        return Response(_message_data(request, message)["reactions"])

    @extend_schema(request=EmojiSerializer, responses={201: ReactionSerializer(many=True)})
    def post(self, request, pk) -> Response:
        """Add your reaction. Adding it twice changes nothing."""
        return self._react(request, pk, request.data, True, status.HTTP_201_CREATED)

    @extend_schema(
        parameters=[OpenApiParameter("emoji", str, required=True)],
        responses={200: ReactionSerializer(many=True)},
    )
    def delete(self, request, pk) -> Response:
        """Remove your reaction, if there is one."""
        return self._react(request, pk, request.query_params, False, status.HTTP_200_OK)

    def _react(self, request, pk, data, wanted: bool, code: int) -> Response:
        message = permissions.message_for_writing(request.user, pk, request.auth)
        edits.react(message, request.user, validated(EmojiSerializer, data)["emoji"], wanted)
        return Response(_message_data(request, message)["reactions"], code)


class RegenerateView(APIView):
    """Generate another reply to the same message. The new reply becomes active."""

    rate = "replies"

    @extend_schema(request=RegenerateSerializer, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(repeat_answer)
    def post(self, request, pk):
        old_reply = permissions.message_for_writing(request.user, pk, request.auth)
        check_open(old_reply.session)
        project = old_reply.session.project
        data = validated(RegenerateSerializer, request.data, project=project)
        model = data.get("model", "")
        limits.require_within_limits(project, Payer.of(request))
        message, reply = edits.regenerate(old_reply, model)
        return answer(request, message, reply)


class RerunView(APIView):
    """Create an edited version of a user's message and generate a reply to it. The original and its
    replies remain as a branch.
    """

    rate = "replies"

    @extend_schema(request=ContentSerializer, parameters=[LAST_EVENT_ID], responses=EXCHANGE)
    @idempotent(repeat_answer)
    def post(self, request, pk):
        message = permissions.message_for_writing(request.user, pk, request.auth)
        check_open(message.session)
        content = validated(ContentSerializer, request.data, message=message)["content"]
        limits.require_within_limits(message.session.project, Payer.of(request))
        new_message, reply = edits.rerun(message, content, request.user)
        return answer(request, new_message, reply)


class ChooseView(APIView):
    """Select one of several siblings: the active path then goes through this message."""

    @extend_schema(request=None, responses={200: SessionSerializer} | CONFLICT_RESPONSE)
    def post(self, request, pk) -> Response:
        return session_response(
            edits.choose(permissions.message_for_writing(request.user, pk, request.auth))
        )


class StopView(APIView):
    """Stop a reply in progress; its text so far stays."""

    @extend_schema(request=None, responses={202: MessageSerializer} | CONFLICT_RESPONSE)
    def post(self, request, pk) -> Response:
        reply = permissions.message_for_writing(request.user, pk, request.auth)
        if reply.is_final:
            raise ConflictError("This message is not a reply in progress.")
        async_to_sync(live_replies.stop)(reply.pk)
        return _message_response(request, reply, status.HTTP_202_ACCEPTED)


class ReceiptView(APIView):
    """The items in a reply's prompt: their ids and revisions, without text."""

    @extend_schema(responses=ReceiptSerializer)
    def get(self, request, pk) -> Response:
        message = permissions.message_for_reading(request.user, pk, request.auth)
        if not message.receipt:
            raise NotFound(
                "This message has no receipt: it is not a reply, or the reply has not begun."
            )
        return Response(message.receipt)


class RevisionPagination(NewestFirstPagination):
    """Pages by version, the latest first."""

    ordering = "-version"
    position = int


class RevisionListView(generics.ListAPIView):
    """The earlier texts of a message, the latest first; empty for a deleted message."""

    queryset = MessageRevision.objects.none()
    serializer_class = RevisionSerializer
    pagination_class = RevisionPagination

    def get_queryset(self) -> QuerySet[MessageRevision]:
        request = self.request
        message = permissions.message_for_reading(request.user, self.kwargs["pk"], request.auth)
        if message.deleted_at is not None:
            return self.queryset
        return message.revisions.select_related("edited_by")


class ReplyStreamView(APIView):
    """A reply as events. The reply may be complete, or in progress in any process."""

    @extend_schema(parameters=[LAST_EVENT_ID], responses={(200, MEDIA_TYPE): EVENTS, 204: None})
    def get(self, request, pk) -> HttpResponseBase:
        """Stream the reply as events, of which the last is `done` or `error`. If `Last-Event-ID`
        is the id of the last event, the response is 204.
        """
        message = permissions.message_for_reading(request.user, pk, request.auth)
        return resume_stream(request, message)
