"""/api/v1/projects/…/notes/: text that is remembered, but is not part of a chat."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.api.serializers import TimeField
from chat.conversations import edits, notes
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.conversations.search import MAX_QUERY_CHARS, search_messages
from chat.models import Message
from projects.api.idempotency import idempotent
from projects.api.schema import CONFLICT_RESPONSE
from projects.core.api.etags import ETagMixin, entity_tag, etag_header, if_match_version
from projects.core.api.filters import MomentFilter
from projects.core.api.json import validated
from projects.core.api.pagination import NewestFirstPagination
from projects.core.errors import InvalidInputError
from projects.permissions import project_for_reading, project_for_writing


class NoteSerializer(serializers.ModelSerializer):
    author = serializers.SerializerMethodField(
        help_text="A username, or for imported notes the name of the author."
    )

    class Meta:
        model = Message
        fields = ("id", "text", "author", "session", "seq", "version", "created_at", "edited_at")
        read_only_fields = fields

    def get_author(self, note: Message) -> str:
        return notes.author_name(note)


class NoteTextSerializer(serializers.Serializer):
    """The text of a note, which is stored unchanged."""

    text = serializers.CharField(trim_whitespace=False, max_length=MAX_MESSAGE_CHARS)

    def validate_text(self, text: str) -> str:
        try:
            return notes.validate_note(text)
        except InvalidInputError as error:
            raise ValidationError(str(error)) from error


@extend_schema_serializer(
    examples=[OpenApiExample("A note", {"text": "The door code is 4711."}, request_only=True)]
)
class NewNoteSerializer(NoteTextSerializer):
    created_at = TimeField(required=False, help_text="The time of the note. Default: now.")


class StaleNoteSerializer(serializers.Serializer):
    """The reason why a change was rejected, and the current note."""

    detail = serializers.CharField()
    note = NoteSerializer()


class NoteFilter(filters.FilterSet):
    """`q`: words that must all occur; the last one may be the beginning of a word. `author`: the
    name of the author, as in the notes.
    """

    q = filters.CharFilter(method="search", max_length=MAX_QUERY_CHARS)
    author = filters.CharFilter(method="written_by", max_length=150)
    since = MomentFilter("created_at", "gte")
    until = MomentFilter("created_at", "lt", help_text="Exclusive.")

    def search(self, rows: QuerySet[Message], name: str, words: str) -> QuerySet[Message]:
        return search_messages(rows, words)

    def written_by(self, rows: QuerySet[Message], name: str, author: str) -> QuerySet[Message]:
        return notes.by_author(rows, author)


class NotePagination(NewestFirstPagination):
    """Pages ordered by the time of the notes, newest first."""

    ordering = ("-created_at", "-id")
    position = datetime.fromisoformat


def _repeat_response(view, request, created) -> Response:
    project = project_for_reading(request.user, view.kwargs["slug"], request.auth)
    note = notes.note_for_reading(request.user, project, created["id"], request.auth)
    return _note_response(note)


class NoteListView(generics.ListAPIView):
    """The notes of a project that you may see, newest first."""

    queryset = Message.objects.none()
    serializer_class = NoteSerializer
    filterset_class = NoteFilter
    pagination_class = NotePagination

    def get_queryset(self) -> QuerySet[Message]:
        user, token = self.request.user, self.request.auth
        return notes.notes_for(user, project_for_reading(user, self.kwargs["slug"], token), token)

    @extend_schema(request=NewNoteSerializer, responses={201: NoteSerializer})
    @idempotent(_repeat_response)
    def post(self, request, slug: str) -> Response:
        """Add a note. Search finds it at once, and later summaries include it."""
        project = project_for_writing(request.user, slug, request.auth)
        data = validated(NewNoteSerializer, request.data)
        note = notes.add_note(project, request.user, data["text"], data.get("created_at"))
        return _note_response(note, status.HTTP_201_CREATED)


STALE = {412: StaleNoteSerializer} | CONFLICT_RESPONSE


class NoteDetailView(ETagMixin, APIView):
    """One note. Its author and the project's owners may change it."""

    @extend_schema(responses=NoteSerializer)
    def get(self, request, slug: str, pk) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        return _note_response(notes.note_for_reading(request.user, project, pk, request.auth))

    def represent_current(self, error: edits.StaleMessageError) -> dict[str, Any]:  # type: ignore[override]
        return {"note": NoteSerializer(error.current).data}

    @extend_schema(request=NoteTextSerializer, responses={200: NoteSerializer} | STALE)
    def patch(self, request, slug: str, pk) -> Response:
        """Replace the text. The previous text is kept as a revision."""
        note = self._note_for_changing(request, slug, pk)
        text = validated(NoteTextSerializer, request.data)["text"]
        version = if_match_version(request)
        return _note_response(notes.edit_note(note, text, request.user, version))

    @extend_schema(responses={204: None} | STALE)
    def delete(self, request, slug: str, pk) -> Response:
        """Remove the note from memory and search."""
        note = self._note_for_changing(request, slug, pk)
        deleted = edits.delete(note, if_match_version(request))
        return Response(status=status.HTTP_204_NO_CONTENT, headers=etag_header(deleted.version))

    def _note_for_changing(self, request, slug: str, pk) -> Message:
        project = project_for_writing(request.user, slug, request.auth)
        return notes.note_for_changing(request.user, project, pk, request.auth)


def _note_response(note: Message, code: int = status.HTTP_200_OK) -> Response:
    data = NoteSerializer(note).data
    return Response(data, code, headers={"ETag": entity_tag(data)})
