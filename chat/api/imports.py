"""/api/v1/projects/…/imports/: upload conversations, which a background task imports."""

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from chat.importers import ImportRejectedError, jobs
from chat.models import Import, ImportState
from projects.api.idempotency import idempotent
from projects.api.serializers import SingleFileField
from projects.core.api.json import validated
from projects.permissions import WRITERS, membership, project_for_writing


class ImportSerializer(serializers.ModelSerializer):
    state = serializers.ChoiceField(ImportState.choices, read_only=True)
    progress = serializers.IntegerField(read_only=True, help_text="Percent.")
    errors = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The first hundred errors."
    )

    class Meta:
        model = Import
        fields = """
            id name format state progress sessions imported skipped refused errors created_at
            finished_at
        """.split()
        read_only_fields = fields


class ImportFileSerializer(serializers.Serializer):
    file = SingleFileField(help_text="An export of conversations, or a zip file with it.")
    format = serializers.ChoiceField(("auto", *settings.CHAT_IMPORTERS), default="auto")


class ImportMixin(generics.GenericAPIView):
    """Base class: the user's imports into a project. Owners and editors may import."""

    queryset = Import.objects.none()
    serializer_class = ImportSerializer

    def get_queryset(self) -> QuerySet[Import]:
        user = self.request.user
        project = membership(user, self.kwargs["slug"], WRITERS, self.request.auth).project
        return project.imports.filter(user=user)


class ImportFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=ImportState.choices)


def _repeat_response(view: ImportMixin, request, created) -> Response:
    return Response(ImportSerializer(get_object_or_404(view.get_queryset(), pk=created["id"])).data)


class ImportListView(ImportMixin, generics.ListAPIView):
    """Your imports into a project."""

    filterset_class = ImportFilter
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": ImportFileSerializer}, responses={202: ImportSerializer}
    )
    @idempotent(_repeat_response)
    def post(self, request, slug) -> Response:
        """Upload a file. A background task adds what the project does not have yet."""
        project = project_for_writing(request.user, slug, request.auth)
        data = validated(ImportFileSerializer, request.data)
        try:
            upload = jobs.create_import(project, request.user, **data)
        except ImportRejectedError as error:
            raise serializers.ValidationError({"file": [str(error)]}) from error
        return Response(ImportSerializer(upload).data, status.HTTP_202_ACCEPTED)


class ImportDetailView(ImportMixin, generics.RetrieveAPIView):
    """One import with its progress and result."""
