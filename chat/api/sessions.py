"""/api/v1/…/sessions/: conversations with their settings, prompts and exports."""

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import permissions
from chat.api.answering import check_is_chat
from chat.api.prompts import PromptQuerySerializer, PromptSerializer
from chat.api.serializers import ForkSerializer, SessionSerializer, ShareLinkSerializer
from chat.conversations import edits
from chat.conversations.search import MAX_QUERY_CHARS, search_sessions
from chat.conversations.sessions import (
    MAX_TAG_CHARS,
    delete_session,
    restore_session,
    share,
    unshare,
    update_session,
    with_list_columns,
)
from chat.exporters import export_response
from chat.models import Session, SessionKind, SessionStatus, Visibility
from chat.prompt.preview import preview
from chat.providers.booking import Payer
from projects.api.idempotency import idempotent
from projects.api.schema import CONFLICT_RESPONSE
from projects.core.api import etags
from projects.core.api.filters import FlagFilter, MomentFilter
from projects.core.api.json import validated
from projects.permissions import project_for_reading, project_for_writing


def with_json_columns(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Annotate `sessions` with everything that `SessionSerializer` needs."""
    related = with_list_columns(sessions).select_related("project", "creator")
    return related.defer("project__instructions")


def fresh(session: Session) -> Session:
    """Read the session again, with everything that `SessionSerializer` needs."""
    return with_json_columns(Session.objects.all()).get(pk=session.pk)


def session_response(session: Session, code: int = status.HTTP_200_OK) -> Response:
    """Return the response with the current state of `session`."""
    return Response(SessionSerializer(fresh(session)).data, code)


def repeat_response(view, request, created) -> Response:
    """Respond to a repeated request with the session that it created."""
    session = permissions.session_for_reading(request.user, created["id"], request.auth)
    return session_response(session)


class SessionFilter(filters.FilterSet):
    """`archived`: true returns only archived sessions, false only the others. `q`: words in the
    title or in messages. `tag`: one of the tags. `kind`: chats (default) or sessions of notes.
    `since` and `until`: the time of the last activity.
    """

    archived = FlagFilter("archived_at", lookup_expr="isnull", exclude=True)
    pinned = FlagFilter()
    remembered = FlagFilter()
    status = filters.ChoiceFilter(choices=SessionStatus.choices)
    visibility = filters.ChoiceFilter(choices=Visibility.choices)
    creator = filters.CharFilter("creator__username", max_length=150)
    since = MomentFilter("last_activity_at", "gte")
    until = MomentFilter("last_activity_at", "lt", help_text="Exclusive.")
    q = filters.CharFilter(method="search", max_length=MAX_QUERY_CHARS)
    tag = filters.CharFilter(method="tagged", max_length=MAX_TAG_CHARS)
    kind = filters.ChoiceFilter(choices=SessionKind.choices)

    def filter_queryset(self, queryset: QuerySet[Session]) -> QuerySet[Session]:
        values = self.form.cleaned_data
        values["kind"] = values["kind"] or SessionKind.CHAT
        return super().filter_queryset(queryset)

    def search(self, sessions: QuerySet[Session], name: str, words: str) -> QuerySet[Session]:
        return search_sessions(sessions, words)

    def tagged(self, sessions: QuerySet[Session], name: str, tag: str) -> QuerySet[Session]:
        return sessions.filter(tags__contains=[tag])


class SessionListView(generics.ListCreateAPIView):
    """The conversations of a project that you may see: shared conversations and your own."""

    queryset = Session.objects.none()
    serializer_class = SessionSerializer
    filterset_class = SessionFilter
    orderings = {
        "-id": UUID,
        "id": UUID,
        "-last_activity_at": datetime.fromisoformat,
        "last_activity_at": datetime.fromisoformat,
    }

    def get_queryset(self) -> QuerySet[Session]:
        user, token = self.request.user, self.request.auth
        project = project_for_reading(user, self.kwargs["slug"], token)
        return with_json_columns(permissions.sessions_for(user, token).filter(project=project))

    @idempotent(repeat_response)
    def post(self, request, *args, **kwargs) -> Response:
        return super().post(request, *args, **kwargs)

    def create(self, request, *args, **kwargs) -> Response:
        self.project = project_for_writing(request.user, kwargs["slug"], request.auth)
        return super().create(request, *args, **kwargs)

    def perform_create(self, serializer) -> None:
        session = serializer.save(project=self.project, creator=self.request.user)
        serializer.instance = fresh(session)


class SessionDetailView(etags.ETagMixin, generics.RetrieveUpdateDestroyAPIView):
    """One conversation. Its creator and the project's owners may change and delete it. Its version
    increases with every change.
    """

    serializer_class = SessionSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Session:
        reads = self.request.method in SAFE_METHODS
        find = permissions.session_for_reading if reads else permissions.session_for_managing
        return fresh(find(self.request.user, self.kwargs["pk"], self.request.auth))

    def get_serializer_context(self) -> dict[str, object]:
        # The schema generator uses the view without a request.
        at_version = etags.if_match_version(self.request) if self.request else None
        return super().get_serializer_context() | {"at_version": at_version}

    def perform_update(self, serializer) -> None:
        serializer.instance = fresh(serializer.save())

    def perform_destroy(self, instance: Session) -> None:
        delete_session(instance, etags.if_match_version(self.request))


class RestoreView(APIView):
    """Undo a deletion within ten minutes. Later, the response is 404."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        deleted = permissions.deleted_session_for_managing(request.user, pk, request.auth)
        session = restore_session(deleted.pk)
        if session is None:
            raise Http404
        return session_response(session)


class CloseView(APIView):
    """Close a conversation. To open it again, set its status to active with PATCH."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        session = permissions.session_for_managing(request.user, pk, request.auth)
        return session_response(update_session(session, status=SessionStatus.CLOSED))


class ClearView(APIView):
    """Delete all messages of a conversation. The conversation itself is kept."""

    @extend_schema(request=None, responses={200: SessionSerializer} | CONFLICT_RESPONSE)
    def post(self, request, pk) -> Response:
        session = permissions.session_for_managing(request.user, pk, request.auth)
        edits.clear(session)
        return session_response(session)


class ShareView(APIView):
    """The share link of a conversation. Every member of the project can read the conversation with
    it, even if it is private.
    """

    @extend_schema(request=None, responses=ShareLinkSerializer)
    def post(self, request, pk) -> Response:
        """Create the link, or return the link that exists."""
        session = permissions.session_for_managing(request.user, pk, request.auth)
        key = share(permissions.require_chat(session))
        path = reverse("shared-chat", args=[session.project.slug, key])
        return Response({"url": request.build_absolute_uri(path)})

    @extend_schema(request=None, responses={204: None})
    def delete(self, request, pk) -> Response:
        """Revoke the link."""
        unshare(permissions.session_for_managing(request.user, pk, request.auth))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ForkView(APIView):
    """Create your own conversation: a copy of this one, up to one of its messages."""

    @extend_schema(request=ForkSerializer, responses={201: SessionSerializer} | CONFLICT_RESPONSE)
    @idempotent(repeat_response)
    def post(self, request, pk) -> Response:
        session = permissions.session_for_writing(request.user, pk, request.auth)
        check_is_chat(session)
        message = validated(ForkSerializer, request.data, session=session)["message"]
        fork = edits.fork(message, request.user)
        return session_response(fork, status.HTTP_201_CREATED)


class PromptView(APIView):
    """The prompt of the next reply, with `content` as the text of the next message."""

    @extend_schema(
        parameters=[PromptQuerySerializer],
        responses={200: PromptSerializer} | CONFLICT_RESPONSE,
    )
    def get(self, request, pk) -> Response:
        session = permissions.session_for_reading(request.user, pk, request.auth)
        check_is_chat(session)
        content = validated(PromptQuerySerializer, request.query_params)["content"]
        prompt = preview(session, content, request.user, Payer.of(request))
        return Response(PromptSerializer(prompt).data)


class ExportView(APIView):
    """Export a conversation as a file: Markdown for reading, JSON for importing."""

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
