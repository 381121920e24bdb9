"""/api/v1/projects/…/notes/: texts that are written down to be remembered."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from chat import changes, notes, search
from chat.api.answering import refusing
from chat.api.times import TimeField
from chat.models import Message
from chat.replies import LONGEST_MESSAGE
from projects.access import project_for_reading, project_for_writing
from projects.api.errors import CONFLICT
from projects.api.filters import Moment
from projects.api.idempotency import idempotent
from projects.api.pagination import NewestFirst
from projects.api.versions import Tagged, asked_version, etag, tag


class NoteSerializer(serializers.ModelSerializer):
    author = serializers.SerializerMethodField(
        help_text="A username, or the name under which it was imported."
    )

    class Meta:
        model = Message
        fields = (
            "id",
            "text",
            "author",
            "session",
            "seq",
            "version",
            "created_at",
            "edited_at",
        )
        read_only_fields = fields

    def get_author(self, note: Message) -> str:
        return notes.author_of(note)


class NoteTextSerializer(serializers.Serializer):
    """The text is kept to the letter."""

    text = serializers.CharField(trim_whitespace=False, max_length=LONGEST_MESSAGE)

    def validate_text(self, text: str) -> str:
        try:
            return notes.checked(text)
        except changes.Refused as refused:
            raise ValidationError(str(refused)) from refused


class NewNoteSerializer(NoteTextSerializer):
    created_at = TimeField(required=False, help_text="The time it is of: now, unless given.")


class StaleNoteSerializer(serializers.Serializer):
    """Why a change was not made, and the note as it is now."""

    detail = serializers.CharField()
    note = NoteSerializer()


class NoteFilter(filters.FilterSet):
    """`q`: all of these words, the last of which may be the beginning of one. `author`: as the
    notes name them.
    """

    q = filters.CharFilter(method="saying", max_length=search.LONGEST)
    author = filters.CharFilter(method="written_by", max_length=150)
    since = Moment("created_at", "gte")
    until = Moment("created_at", "lt", help_text="Not included.")

    def saying(self, rows: QuerySet[Message], name: str, words: str) -> QuerySet[Message]:
        return search.saying(rows, words)

    def written_by(self, rows: QuerySet[Message], name: str, author: str) -> QuerySet[Message]:
        return notes.by_author(rows, author)


class NewestTimeFirst(NewestFirst):
    """By the time they are of."""

    ordering = ("-created_at", "-id")
    position = datetime.fromisoformat


def _tell_again(view, request, made) -> Response:
    project = project_for_reading(request.user, view.kwargs["slug"], request.auth)
    return _tell(notes.note_for_reading(request.user, project, made["id"], request.auth))


class Notes(generics.ListAPIView):
    """The notes of a project that you may see, the newest first."""

    queryset = Message.objects.none()
    serializer_class = NoteSerializer
    filterset_class = NoteFilter
    pagination_class = NewestTimeFirst

    def get_queryset(self) -> QuerySet[Message]:
        user, token = self.request.user, self.request.auth
        return notes.notes_for(user, project_for_reading(user, self.kwargs["slug"], token), token)

    @extend_schema(request=NewNoteSerializer, responses={201: NoteSerializer})
    @idempotent(_tell_again)
    def post(self, request, slug: str) -> Response:
        """Writes one down. Search finds it at once, and it settles into the project's memory."""
        project = project_for_writing(request.user, slug, request.auth)
        given = NewNoteSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        said = given.validated_data
        note = notes.add(project, request.user, said["text"], said.get("created_at"))
        return _tell(note, status.HTTP_201_CREATED)


STALE = {412: StaleNoteSerializer} | CONFLICT


class OneNote(Tagged, APIView):
    """One note. Its author and the project's owners change it."""

    @extend_schema(responses=NoteSerializer)
    def get(self, request, slug: str, pk) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        return _tell(notes.note_for_reading(request.user, project, pk, request.auth))

    @extend_schema(
        request=NoteTextSerializer,
        responses={200: NoteSerializer} | STALE,
    )
    def patch(self, request, slug: str, pk) -> Response:
        """Gives it another text; the one before stays among the revisions of the message."""
        note = self._to_change(request, slug, pk)
        given = NoteTextSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            with refusing():
                text, version = given.validated_data["text"], asked_version(request)
                return _tell(notes.change(note, text, request.user, version))
        except changes.Stale as stale:
            return _stale(stale)

    @extend_schema(responses={204: None} | STALE)
    def delete(self, request, slug: str, pk) -> Response:
        """Takes it out of memory and search."""
        note = self._to_change(request, slug, pk)
        try:
            with refusing():
                gone = changes.delete(note, asked_version(request))
        except changes.Stale as stale:
            return _stale(stale)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=etag(gone.version))

    def _to_change(self, request, slug: str, pk) -> Message:
        project = project_for_writing(request.user, slug, request.auth)
        return notes.note_for_changing(request.user, project, pk, request.auth)


def _tell(note: Message, code: int = status.HTTP_200_OK) -> Response:
    told = NoteSerializer(note).data
    return Response(told, code, headers={"ETag": tag(told)})


def _stale(stale: changes.Stale) -> Response:
    told: dict[str, Any] = {"detail": str(stale), "note": NoteSerializer(stale.message).data}
    headers = {"ETag": tag(told["note"])}
    return Response(told, status.HTTP_412_PRECONDITION_FAILED, headers=headers)
