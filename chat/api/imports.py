"""/api/v1/projects/…/imports/: files of conversations, brought in by a task."""

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from chat import imports
from chat.importers import Refused
from chat.models import Import, ImportState
from projects.access import project_for_writing
from projects.api.idempotency import idempotent


class ImportSerializer(serializers.ModelSerializer):
    state = serializers.ChoiceField(ImportState.choices, read_only=True)
    progress = serializers.IntegerField(read_only=True, help_text="Percent.")
    errors = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The first hundred reasons."
    )

    class Meta:
        model = Import
        fields = (
            "id",
            "name",
            "format",
            "state",
            "progress",
            "sessions",
            "imported",
            "skipped",
            "refused",
            "errors",
            "created_at",
            "finished_at",
        )
        read_only_fields = fields


class ImportFileSerializer(serializers.Serializer):
    file = serializers.FileField(help_text="An export, or the zip file that it came in.")
    format = serializers.ChoiceField(("auto", *settings.CHAT_IMPORTERS), default="auto")


class MyImports(generics.GenericAPIView):
    """What both routes stand on: who may write in a project imports, and sees their own imports."""

    queryset = Import.objects.none()
    serializer_class = ImportSerializer

    def get_queryset(self) -> QuerySet[Import]:
        user = self.request.user
        project = project_for_writing(user, self.kwargs["slug"], self.request.auth)
        return project.imports.filter(user=user)


class ImportFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=ImportState.choices)


def _tell_again(view: MyImports, request, made) -> Response:
    return Response(ImportSerializer(get_object_or_404(view.get_queryset(), pk=made["id"])).data)


class Imports(MyImports, generics.ListAPIView):
    """Your imports into a project."""

    filterset_class = ImportFilter
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": ImportFileSerializer}, responses={202: ImportSerializer}
    )
    @idempotent(_tell_again)
    def post(self, request, slug) -> Response:
        """Takes a file; what it holds that is not there yet is added in the background."""
        project = project_for_writing(request.user, slug, request.auth)
        sent = ImportFileSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        try:
            upload = imports.receive(project, request.user, **sent.validated_data)
        except Refused as reason:
            raise serializers.ValidationError({"file": [str(reason)]}) from reason
        return Response(ImportSerializer(upload).data, status.HTTP_202_ACCEPTED)


class OneImport(MyImports, generics.RetrieveAPIView):
    """One import: how far it is, and what it did."""
