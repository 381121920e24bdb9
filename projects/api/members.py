"""/api/v1/projects/{slug}/members/"""

from django.db import transaction
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from projects import permissions
from projects.api.idempotency import IdempotentResult, idempotent
from projects.api.projects import METHODS
from projects.api.schema import INVALID_INPUT_RESPONSE
from projects.api.serializers import InvitedMemberSerializer, MemberSerializer
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.core.api.json import validated
from projects.invitations import invite_user
from projects.models import MemberRole, Membership
from projects.services import change_role, remove_member


class MembershipMixin:
    """Sets `self.membership`. Members may read; editors and owners may write."""

    membership: Membership

    def initial(self, request, *args, **kwargs) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        # A method without a handler answers 405 to every member.
        is_write = request.method not in SAFE_METHODS and hasattr(self, request.method.lower())
        roles = permissions.WRITERS if is_write else MemberRole.values
        self.membership = permissions.membership(request.user, kwargs["slug"], roles, request.auth)
        if is_write:
            permissions.require_active(self.membership.project)
        # Saves a query for the user.
        self.membership.user = request.user


class MemberBaseView(generics.GenericAPIView):
    """Members may read, owners may change."""

    queryset = Membership.objects.none()
    serializer_class = MemberSerializer
    http_method_names = METHODS
    scope = "admin"

    def get_queryset(self):
        reads = self.request.method in SAFE_METHODS
        find = permissions.project_for_reading if reads else permissions.project_for_managing
        project = find(self.request.user, self.kwargs["slug"], self.request.auth)
        return project.memberships.select_related("user")


def _replay_invited(view: MemberBaseView, request, ids) -> Response:
    project = permissions.project_for_managing(request.user, view.kwargs["slug"], request.auth)
    invitation = get_object_or_404(project.invitations.all(), pk=ids["id"])
    return Response(InvitedMemberSerializer(invitation).data)


class MemberListView(MemberBaseView, generics.ListAPIView):
    """The members of a project, and their roles."""

    @extend_schema(
        request=InvitedMemberSerializer,
        responses={201: InvitedMemberSerializer} | INVALID_INPUT_RESPONSE,
    )
    @idempotent(_replay_invited)
    def post(self, request, slug: str) -> IdempotentResult:
        """Invites a user by name. They become a member once they accept, on the page of their
        projects or with `POST /api/v1/invitations/{id}/`. The response is the same for a name
        without an account.
        """
        project = permissions.project_for_managing(request.user, slug, request.auth)
        data = validated(InvitedMemberSerializer, request.data)
        invitation = invite_user(project, **data, by=request.user)
        response = Response(InvitedMemberSerializer(invitation).data, status.HTTP_201_CREATED)
        return IdempotentResult(response.status_code, {"id": invitation.pk}, lambda: response)


class MemberDetailView(ETagMixin, MemberBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One member of a project. The last owner cannot be removed or get another role."""

    @extend_schema(responses={204: None} | INVALID_INPUT_RESPONSE)
    def delete(self, request, *args, **kwargs):
        """Removes a member. Owners can remove all members. Other members can remove only
        themselves, and leave the project. Former members need a new invitation to return. The last
        owner cannot be removed.
        """
        return super().delete(request, *args, **kwargs)

    def get_queryset(self):
        if self.request.method != "DELETE":
            return super().get_queryset()
        user, slug, username = self.request.user, self.kwargs["slug"], self.kwargs["username"]
        project = permissions.project_for_removing(user, slug, username, self.request.auth)
        return project.memberships.select_related("user")

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
