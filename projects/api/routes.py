"""/api/v1/projects/ and the members of a project."""

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.urls import path, register_converter
from django.urls.converters import StringConverter
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from projects import access
from projects.api.errors import NOT_AS_SENT
from projects.api.idempotency import Made, idempotent
from projects.api.serializers import MemberSerializer, ProjectSerializer
from projects.api.versions import Tagged, is_conditional, refuse_changed
from projects.creation import create_project
from projects.deletion import delete_project
from projects.members import LastOwner, add, change_role, remove
from projects.models import Membership, Project

PATCHED = ("get", "post", "patch", "delete", "head", "options")


class TokenScheme(OpenApiAuthenticationExtension):
    """How the schema tells of our tokens."""

    target_class = "projects.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def _project_again(view, request, made) -> Response:
    projects = access.projects_for(request.user, request.auth)
    return Response(ProjectSerializer(get_object_or_404(projects, pk=made["id"])).data)


class Projects(generics.ListCreateAPIView):
    """The projects that you are a member of; who creates one owns it."""

    queryset = Project.objects.none()
    serializer_class = ProjectSerializer

    def get_queryset(self):
        return access.projects_for(self.request.user, self.request.auth)

    @idempotent(_project_again)
    def post(self, request, *args, **kwargs) -> Response:
        return super().post(request, *args, **kwargs)

    def perform_create(self, serializer) -> None:
        token = self.request.auth
        if token is not None and token.project_id:
            raise PermissionDenied("This token opens one project and cannot create another.")
        serializer.instance = create_project(self.request.user, **serializer.validated_data)


class OneProject(Tagged, generics.RetrieveUpdateDestroyAPIView):
    """One project. Its owners change and delete it, with a token of the scope `admin`."""

    serializer_class = ProjectSerializer
    http_method_names = PATCHED
    scope = "admin"

    def get_object(self) -> Project:
        reads = self.request.method in SAFE_METHODS
        find = access.project_for_reading if reads else access.project_for_owning
        return find(self.request.user, self.kwargs["slug"], self.request.auth)

    @transaction.atomic
    def perform_update(self, serializer) -> None:
        self._refuse_changed(serializer.instance)
        serializer.save()

    @transaction.atomic
    def perform_destroy(self, instance: Project) -> None:
        self._refuse_changed(instance)
        delete_project(instance)

    def _refuse_changed(self, project: Project) -> None:
        if is_conditional(self.request):
            now = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            refuse_changed(self.request, self.get_serializer(now).data)


class ProjectMembers(generics.GenericAPIView):
    """What both member routes stand on: members read, owners change, the last owner stays."""

    queryset = Membership.objects.none()
    serializer_class = MemberSerializer
    http_method_names = PATCHED
    scope = "admin"

    def get_queryset(self):
        reads = self.request.method in SAFE_METHODS
        find = access.project_for_reading if reads else access.project_for_owning
        project = find(self.request.user, self.kwargs["slug"], self.request.auth)
        return project.memberships.select_related("user")


def _member_again(view: ProjectMembers, request, made) -> Response:
    return Response(MemberSerializer(get_object_or_404(view.get_queryset(), pk=made["id"])).data)


class Members(ProjectMembers, generics.ListCreateAPIView):
    """Who belongs to a project, and as what."""

    @idempotent(_member_again)
    def post(self, request, *args, **kwargs) -> Made:
        self.project = access.project_for_owning(request.user, kwargs["slug"], request.auth)
        response = super().post(request, *args, **kwargs)
        return Made(response.status_code, {"id": self.member.pk}, lambda: response)

    def perform_create(self, serializer) -> None:
        fields = dict(serializer.validated_data)
        self.member, made = add(self.project, **fields, by=self.request.user)
        if not made:
            raise ValidationError({"username": ["They are a member already."]})
        serializer.instance = self.member


class OneMember(Tagged, ProjectMembers, generics.RetrieveUpdateDestroyAPIView):
    """One member of a project, which keeps at least one owner."""

    @extend_schema(responses={204: None} | NOT_AS_SENT)
    def delete(self, request, *args, **kwargs):
        return super().delete(request, *args, **kwargs)

    def get_object(self) -> Membership:
        return get_object_or_404(self.get_queryset(), user__username=self.kwargs["username"])

    def _refuse_changed(self, member: Membership) -> None:
        if is_conditional(self.request):
            # All of them, in the order in which the owners among them are locked.
            rows = member.project.memberships.select_for_update().order_by("pk")
            now = {row.pk: row for row in rows}.get(member.pk)
            refuse_changed(self.request, self.get_serializer(now).data if now else {})

    @transaction.atomic
    def perform_update(self, serializer) -> None:
        self._refuse_changed(serializer.instance)
        role = serializer.validated_data.get("role")
        if role is None:
            return
        try:
            change_role(serializer.instance, role, self.request.user)
        except LastOwner as refused:
            raise ValidationError({"role": [str(refused)]}) from refused

    @transaction.atomic
    def perform_destroy(self, instance: Membership) -> None:
        self._refuse_changed(instance)
        try:
            remove(instance, self.request.user)
        except LastOwner as refused:
            raise ValidationError({"detail": str(refused)}) from refused


class Username(StringConverter):
    """What Django lets usernames consist of."""

    regex = r"[\w.@+-]+"


register_converter(Username, "username")

urlpatterns = [
    path("projects/", Projects.as_view(), name="api-projects"),
    path("projects/<slug:slug>/", OneProject.as_view(), name="api-project"),
    path("projects/<slug:slug>/members/", Members.as_view(), name="api-members"),
    path(
        "projects/<slug:slug>/members/<username:username>/",
        OneMember.as_view(),
        name="api-member",
    ),
]
