"""/api/v1/projects/…/files/: the files of a project and of its chats."""

from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.permissions import session_for_writing
from memory.api.base import AS_OF, moment_parameter
from memory.api.forgetting import ForgetReceiptSerializer, forget_data
from memory.files import access, adding, processing
from memory.files.responses import DOWNLOAD_TYPE, file_response
from memory.forgetting.service import ForgetScope
from memory.models import File, FileRevision, FileState
from projects.api.members import MembershipMixin
from projects.api.serializers import SingleFileField
from projects.core.api.json import validated
from projects.core.api.pagination import NewestFirstPagination
from projects.core.errors import InvalidInputError

PAGES = OpenApiParameter(
    "pages",
    OpenApiTypes.STR,
    description="Pages such as `3` or `3-5,8`; in a file without pages, its sections.",
)
VERSION = OpenApiParameter(
    "version",
    OpenApiTypes.INT,
    description="The number of a version. Default: the latest version with text.",
)


class FileVersionSerializer(serializers.ModelSerializer):
    added_by = serializers.CharField(source="added_by.username", default=None, allow_null=True)
    state = serializers.ChoiceField(FileState.choices)
    progress = serializers.IntegerField(
        help_text="The share of the text that search finds, in percent."
    )
    reason = serializers.SerializerMethodField(
        help_text="The reason why the file could not be read, in English."
    )
    reason_code = serializers.CharField(
        source="reason", help_text="The same for programs, such as `encrypted` or `no_text`."
    )
    warnings = serializers.SerializerMethodField()

    class Meta:
        model = FileRevision
        fields = (
            *("number", "state", "progress", "reason", "reason_code", "warnings"),
            *("media_type", "title", "size", "sha256", "page_count", "added_by", "created_at"),
        )
        read_only_fields = fields

    def get_reason(self, revision: FileRevision) -> str:
        return processing.explain(revision.reason)

    def get_warnings(self, revision: FileRevision) -> list[str]:
        return [processing.explain(warning) for warning in revision.warnings]


class FileSerializer(serializers.ModelSerializer):
    """A file with its versions, last first. `session` is its chat; null: the whole project."""

    added_by = serializers.CharField(source="added_by.username", default=None, allow_null=True)
    session = serializers.UUIDField(source="session_id", allow_null=True)
    versions = FileVersionSerializer(source="revisions", many=True)

    class Meta:
        model = File
        fields = (
            *("id", "name", "session", "added_by", "uses", "created_at", "changed_at"),
            "versions",
        )
        read_only_fields = fields


class NewFileSerializer(serializers.Serializer):
    """A file, or a zip archive of files. A file of the same name gets a new version."""

    file = SingleFileField()
    session = serializers.UUIDField(required=False, help_text="Only for this chat.")


class RefusedFileSerializer(serializers.Serializer):
    name = serializers.CharField()
    reason = serializers.CharField()


class AddedFilesSerializer(serializers.Serializer):
    files = FileSerializer(many=True)
    refused = RefusedFileSerializer(many=True, help_text="Files of an archive.")


PASSAGE = OpenApiParameter(
    "passage",
    OpenApiTypes.INT,
    description="The number of the first passage. A response has at most 1,000 passages.",
)


class FilePassageSerializer(serializers.Serializer):
    number = serializers.IntegerField(help_text="The number of the passage in the file.")
    headings = serializers.CharField()
    text = serializers.CharField()


class FilePageSerializer(serializers.Serializer):
    """A page, slide, sheet or section. `page` is null in files without pages."""

    number = serializers.IntegerField()
    page = serializers.IntegerField(allow_null=True)
    label = serializers.CharField()
    passages = FilePassageSerializer(many=True)


class PassageQuerySerializer(serializers.Serializer):
    passage = serializers.IntegerField(default=1, min_value=1, max_value=2**31 - 1)


class FileTextSerializer(serializers.Serializer):
    version = serializers.IntegerField()
    pages = FilePageSerializer(many=True)
    next = serializers.IntegerField(
        allow_null=True,
        help_text="The passage that follows, for `passage`; null at the end of the file.",
    )


class FileFilter(filters.FilterSet):
    name = filters.CharFilter("name", lookup_expr="icontains", max_length=200)
    session = filters.UUIDFilter("session")


class FilePagination(NewestFirstPagination):
    ordering = ("-changed_at", "-id")
    position = datetime.fromisoformat


class FileListView(MembershipMixin, generics.ListAPIView):
    """The files of the project and of the chats that you may read, last changed first."""

    queryset = File.objects.none()
    serializer_class = FileSerializer
    filterset_class = FileFilter
    pagination_class = FilePagination
    parser_classes = (MultiPartParser,)

    def get_queryset(self) -> QuerySet[File]:
        project = self.membership.project
        moment = moment_parameter(self.request, "as_of", project)
        return access.files_for(self.request.user, project, moment)

    @extend_schema(parameters=[AS_OF])
    def get(self, request, slug: str) -> Response:
        return super().get(request, slug)

    @extend_schema(
        request={"multipart/form-data": NewFileSerializer}, responses={201: AddedFilesSerializer}
    )
    def post(self, request, slug: str) -> Response:
        """Add a file, which is read in the background. The same content is not added twice."""
        data = validated(NewFileSerializer, request.data)
        file, session = data["file"], data.get("session")
        project, chat_session = self.membership.project, None
        if session is not None:
            chat_session = session_for_writing(request.user, session, request.auth, slug)
        result = adding.add_upload(project, request.user, file.name or "", file, chat_session)
        if not result.added:
            raise InvalidInputError(result.refused[0][1], field="file")
        ids = [document.pk for document in result.added]
        added = access.files_for(request.user, project).filter(pk__in=ids).order_by("pk")
        refused = [{"name": name, "reason": reason} for name, reason in result.refused]
        body = AddedFilesSerializer({"files": added, "refused": refused}).data
        return Response(body, status.HTTP_201_CREATED)


class FileMixin(MembershipMixin):
    """Base class that finds the file and the version of a request."""

    def find_file(self, request, pk) -> File:
        return access.file_for_reading(request.user, self.membership.project, pk)

    def find_version(self, request, pk) -> FileRevision:
        """Return the version `?version=`, by default the latest version with text."""
        document, number = self.find_file(request, pk), request.query_params.get("version", "")
        return access.version_of(document, number)


class FileDetailView(FileMixin, APIView):
    """One file with its versions."""

    scope = "admin"

    @extend_schema(responses=FileSerializer)
    def get(self, request, slug: str, pk) -> Response:
        return Response(FileSerializer(self.find_file(request, pk)).data)

    @extend_schema(responses={200: ForgetReceiptSerializer})
    def delete(self, request, slug: str, pk) -> Response:
        """Forget the file permanently, in all versions, and remove it from search."""
        document = self.find_file(request, pk)
        return Response(forget_data(self.membership, ForgetScope(file=document.pk), request.user))


class FileTextView(FileMixin, APIView):
    """The text of a file by page: at most a hundred pages and 1,000 passages, by default the
    first ones.
    """

    @extend_schema(parameters=[PAGES, PASSAGE, VERSION], responses=FileTextSerializer)
    def get(self, request, slug: str, pk) -> Response:
        revision = self.find_version(request, pk)
        first = validated(PassageQuerySerializer, request.query_params)["passage"]
        pages = access.pages_of(revision, request.query_params.get("pages", ""), passage=first)
        following = access.next_passage(revision, pages)
        body = {"version": revision.number, "pages": pages, "next": following}
        return Response(FileTextSerializer(body).data)


class FileDownloadView(FileMixin, APIView):
    """The stored bytes of a file."""

    @extend_schema(parameters=[VERSION], responses={(200, DOWNLOAD_TYPE): OpenApiTypes.BINARY})
    def get(self, request, slug: str, pk) -> HttpResponseBase:
        return file_response(self.find_version(request, pk))


class FileRetryView(FileMixin, APIView):
    """Start another attempt to read a file that could not be read."""

    @extend_schema(request=None, responses=FileSerializer)
    def post(self, request, slug: str, pk) -> Response:
        document = access.require_change(self.membership, self.find_file(request, pk))
        adding.retry(document)
        return Response(FileSerializer(self.find_file(request, pk)).data)
