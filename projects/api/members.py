"""/api/v1/projects/{slug}/members/"""

from django.db import transaction
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from projects import permissions
from projects.api.idempotency import IdempotentResult, idempotent
from projects.api.projects import METHODS
from projects.api.schema import INVALID_INPUT_RESPONSE
from projects.api.serializers import MemberSerializer
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.models import Membership
from projects.services import add_member, change_role, remove_member


class MemberBaseView(generics.GenericAPIView):
    """Members may read, owners may change."""

    queryset = Membership.objects.none()
    serializer_class = MemberSerializer
    http_method_names = METHODS
    scope = "admin"

    def get_queryset(self):
        reads = self.request.method in SAFE_METHODS
        find = permissions.project_for_reading if reads else permissions.project_for_owning
        project = find(self.request.user, self.kwargs["slug"], self.request.auth)
        return project.memberships.select_related("user")


def _replay_member(view: MemberBaseView, request, ids) -> Response:
    return Response(MemberSerializer(get_object_or_404(view.get_queryset(), pk=ids["id"])).data)


class MemberListView(MemberBaseView, generics.ListCreateAPIView):
    """The members of a project, and their roles."""

    @idempotent(_replay_member)
    def post(self, request, *args, **kwargs) -> IdempotentResult:
        self.project = permissions.project_for_owning(request.user, kwargs["slug"], request.auth)
        response = super().post(request, *args, **kwargs)
        return IdempotentResult(response.status_code, {"id": self.member.pk}, lambda: response)

    def perform_create(self, serializer) -> None:
        fields = dict(serializer.validated_data)
        self.member, is_new = add_member(self.project, **fields, by=self.request.user)
        if not is_new:
            raise ValidationError({"username": ["They are a member already."]})
        serializer.instance = self.member


class MemberDetailView(ETagMixin, MemberBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One member of a project, which keeps at least one owner."""

    @extend_schema(responses={204: None} | INVALID_INPUT_RESPONSE)
    def delete(self, request, *args, **kwargs):
        return super().delete(request, *args, **kwargs)

    def get_object(self) -> Membership:
        return get_object_or_404(self.get_queryset(), user__username=self.kwargs["username"])

    @transaction.atomic
    def perform_update(self, serializer) -> None:
        self.check_version(serializer.instance)
        if role := serializer.validated_data.get("role"):
            change_role(serializer.instance, role, self.request.user)

    @transaction.atomic
    def perform_destroy(self, instance: Membership) -> None:
        self.check_version(instance)
        remove_member(instance, self.request.user)

    def check_version(self, member: Membership) -> None:
        if is_conditional(self.request):
            # Locks all members, in the order in which `services` locks the owners among them.
            rows = member.project.memberships.select_for_update().order_by("pk")
            current = {row.pk: row for row in rows}.get(member.pk)
            check_if_match(self.request, self.get_serializer(current).data if current else {})
