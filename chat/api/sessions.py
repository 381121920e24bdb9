"""/api/v1/…/sessions/: conversations, how they are kept, and what stands in their prompts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import access, changes, prompt, search
from chat.api.answering import refuse_notes, refusing
from chat.api.serializers import ForkSerializer, PromptSerializer, SessionSerializer
from chat.models import Session, SessionKind, SessionStatus, Visibility
from chat.sessions import Stale, counted, delete_session, restore_session, update_session
from projects.access import project_for_reading, project_for_writing
from projects.api import versions
from projects.api.errors import CONFLICT
from projects.api.filters import Flag, Moment
from projects.api.idempotency import idempotent


def told(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """`sessions` with all that their JSON is made of."""
    related = counted(sessions).select_related("project", "creator")
    return related.defer("project__instructions")


def tell(session: Session, code: int = status.HTTP_200_OK) -> Response:
    """The answer that tells of `session` as it is now."""
    fresh = told(Session.objects.all()).get(pk=session.pk)
    return Response(SessionSerializer(fresh).data, code)


def tell_again(view, request, made) -> Response:
    """Tells of a session that was made before."""
    return tell(access.session_for_reading(request.user, made["id"], request.auth))


class SessionFilter(filters.FilterSet):
    """`archived`: only those that are, or are not. `q`: words in the title or in what was said.
    `kind`: chats, unless it asks for the sessions that hold notes. `since` and `until` are of the
    last activity.
    """

    archived = Flag("archived_at", lookup_expr="isnull", exclude=True)
    pinned = Flag()
    remembered = Flag()
    status = filters.ChoiceFilter(choices=SessionStatus.choices)
    visibility = filters.ChoiceFilter(choices=Visibility.choices)
    creator = filters.CharFilter("creator__username", max_length=150)
    since = Moment("last_activity_at", "gte")
    until = Moment("last_activity_at", "lt", help_text="Not included.")
    q = filters.CharFilter(method="containing", max_length=search.LONGEST)
    kind = filters.ChoiceFilter(choices=SessionKind.choices)

    def filter_queryset(self, queryset: QuerySet[Session]) -> QuerySet[Session]:
        given = self.form.cleaned_data
        given["kind"] = given["kind"] or SessionKind.CHAT
        return super().filter_queryset(queryset)

    def containing(self, sessions: QuerySet[Session], name: str, words: str) -> QuerySet[Session]:
        return search.containing(sessions, words)


class Sessions(generics.ListCreateAPIView):
    """The conversations of a project that you may see: the shared ones and your own."""

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
        return told(access.sessions_for(user, token).filter(project=project))

    @idempotent(tell_again)
    def post(self, request, *args, **kwargs) -> Response:
        return super().post(request, *args, **kwargs)

    def create(self, request, *args, **kwargs) -> Response:
        self.project = project_for_writing(request.user, kwargs["slug"], request.auth)
        return super().create(request, *args, **kwargs)

    def perform_create(self, serializer) -> None:
        made = serializer.save(project=self.project, creator=self.request.user)
        serializer.instance = told(Session.objects.all()).get(pk=made.pk)


@contextmanager
def refusing_stale() -> Iterator[None]:
    try:
        yield
    except Stale as stale:
        raise versions.Changed from stale


class OneSession(versions.Tagged, generics.RetrieveUpdateDestroyAPIView):
    """One conversation. Its creator and the project's owners change and delete it. Its version
    rises with whatever becomes of it.
    """

    serializer_class = SessionSerializer
    http_method_names = ("get", "patch", "delete", "head", "options")

    def get_object(self) -> Session:
        reads = self.request.method in SAFE_METHODS
        find = access.session_for_reading if reads else access.session_for_managing
        found = find(self.request.user, self.kwargs["pk"], self.request.auth)
        return told(Session.objects.all()).get(pk=found.pk)

    def get_serializer_context(self) -> dict[str, object]:
        # The schema is made of a view that nobody asked.
        at_version = versions.asked_version(self.request) if self.request else None
        return super().get_serializer_context() | {"at_version": at_version}

    def perform_update(self, serializer) -> None:
        with refusing_stale():
            serializer.instance = told(Session.objects.all()).get(pk=serializer.save().pk)

    def perform_destroy(self, instance: Session) -> None:
        with refusing_stale():
            delete_session(instance, versions.asked_version(self.request))


class Restore(APIView):
    """Takes a deletion back within ten minutes of it; 404 when that is too late."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        deleted = access.deleted_session_for_managing(request.user, pk, request.auth)
        session = restore_session(deleted.pk)
        if session is None:
            raise Http404
        return tell(session)


class Close(APIView):
    """Ends a conversation; a PATCH of its status to active opens it again."""

    @extend_schema(request=None, responses=SessionSerializer)
    def post(self, request, pk) -> Response:
        session = access.session_for_managing(request.user, pk, request.auth)
        return tell(update_session(session, status=SessionStatus.CLOSED))


class Clear(APIView):
    """Deletes all that was said in a conversation; the conversation itself stays."""

    @extend_schema(request=None, responses={200: SessionSerializer} | CONFLICT)
    def post(self, request, pk) -> Response:
        session = access.session_for_managing(request.user, pk, request.auth)
        with refusing():
            changes.clear(session)
        return tell(session)


class Fork(APIView):
    """A conversation of your own that begins with this one, down to a message of it."""

    @extend_schema(request=ForkSerializer, responses={201: SessionSerializer} | CONFLICT)
    @idempotent(tell_again)
    def post(self, request, pk) -> Response:
        session = access.session_for_writing(request.user, pk, request.auth)
        refuse_notes(session)
        asked = ForkSerializer(data=request.data, context={"session": session})
        asked.is_valid(raise_exception=True)
        fork = changes.fork(asked.validated_data["message"], request.user)
        return tell(fork, status.HTTP_201_CREATED)


class Prompt(APIView):
    """What the next reply would be told, with `content` as the message it answers."""

    @extend_schema(
        parameters=[OpenApiParameter("content", str, description="What would be said now.")],
        responses={200: PromptSerializer} | CONFLICT,
    )
    def get(self, request, pk) -> Response:
        session = access.session_for_reading(request.user, pk, request.auth)
        refuse_notes(session)
        content = request.query_params.get("content", "").strip()
        return Response(PromptSerializer(prompt.preview(session, content, request.user)).data)
