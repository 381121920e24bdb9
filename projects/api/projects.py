"""/api/v1/projects/: the projects of a user, and their settings."""

from django.db import transaction
from django.shortcuts import get_object_or_404
from django_filters import rest_framework as filters
from rest_framework import generics
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from projects import permissions
from projects.api.idempotency import idempotent
from projects.api.serializers import ProjectSerializer
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.core.api.filters import FlagFilter
from projects.models import Project
from projects.services import create_project, delete_project

METHODS = ("get", "post", "patch", "delete", "head", "options")


def _replay_project(view, request, ids) -> Response:
    projects = permissions.projects_for(request.user, request.auth)
    return Response(ProjectSerializer(get_object_or_404(projects, pk=ids["id"])).data)


class ProjectFilter(filters.FilterSet):
    """`archived`: true returns only archived projects, false only the others."""

    archived = FlagFilter("archived_at", lookup_expr="isnull", exclude=True)


class ProjectListView(generics.ListCreateAPIView):
    """The projects of which you are a member. The creator of a project becomes its owner."""

    queryset = Project.objects.none()
    serializer_class = ProjectSerializer
    filterset_class = ProjectFilter

    def get_queryset(self):
        return permissions.projects_for(self.request.user, self.request.auth)

    @idempotent(_replay_project)
    def post(self, request, *args, **kwargs) -> Response:
        return super().post(request, *args, **kwargs)

    def perform_create(self, serializer) -> None:
        token = self.request.auth
        if token is not None and token.project_id:
            raise PermissionDenied(
                "This token is limited to one project and cannot create another."
            )
        serializer.instance = create_project(self.request.user, **serializer.validated_data)


class ProjectDetailView(ETagMixin, generics.RetrieveUpdateDestroyAPIView):
    """One project. Only its owners can change and delete it. For changes, tokens need the scope
    `admin`.
    """

    serializer_class = ProjectSerializer
    http_method_names = METHODS
    scope = "admin"

    def get_object(self) -> Project:
        reads = self.request.method in SAFE_METHODS
        find = permissions.project_for_reading if reads else permissions.project_for_owning
        return find(self.request.user, self.kwargs["slug"], self.request.auth)

    @transaction.atomic
    def perform_update(self, serializer) -> None:
        self.check_version(serializer.instance)
        serializer.save()

    @transaction.atomic
    def perform_destroy(self, instance: Project) -> None:
        self.check_version(instance)
        delete_project(instance)

    def check_version(self, project: Project) -> None:
        if is_conditional(self.request):
            current = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            check_if_match(self.request, self.get_serializer(current).data)
