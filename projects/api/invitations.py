"""/api/v1/projects/{slug}/invitations/: invitations to a project, by link or by username, for its
owners. /api/v1/invitations/: the invitations that you have received by username.
"""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from projects import invitations
from projects.api.idempotency import IdempotentResult, idempotent
from projects.api.serializers import MemberSerializer
from projects.core.api.json import StrictSerializer, validated
from projects.models import Invitation, InvitationStatus, MemberRole
from projects.models.invitations import MAX_USES
from projects.permissions import project_for_managing, project_for_owning


class InvitationSerializer(StrictSerializer, serializers.ModelSerializer):
    """An invitation without its link."""

    role = serializers.ChoiceField(MemberRole.choices, default=MemberRole.EDITOR)
    expires_at = serializers.DateTimeField(
        required=False, help_text="At most a year from now. Default: a week from now."
    )
    max_uses = serializers.IntegerField(
        min_value=1,
        max_value=MAX_USES,
        allow_null=True,
        default=1,
        help_text="How many people can use the link. Null: no limit.",
    )
    state = serializers.ChoiceField(InvitationStatus.choices, read_only=True)
    created_by = serializers.SlugRelatedField(slug_field="username", read_only=True)

    class Meta:
        model = Invitation
        fields = "id username role state expires_at max_uses uses created_by created_at".split()
        read_only_fields = ("username", "uses")
        extra_kwargs = {"username": {"help_text": "The user who was invited. Null for a link."}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        now = timezone.now()
        expires_at = attrs.setdefault("expires_at", now + invitations.DEFAULT_LIFETIME)
        if not now < expires_at <= now + invitations.MAX_LIFETIME:
            raise serializers.ValidationError(
                {"expires_at": ["This must be within a year from now."]}
            )
        return attrs


class NewInvitationSerializer(InvitationSerializer):
    link = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The link to send. It is shown only once: null if the request is repeated.",
    )

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "link"]


class InvitationBaseView(generics.GenericAPIView):
    """Base class. Only owners can create and see links. Tokens need the scope `admin`."""

    queryset = Invitation.objects.none()
    serializer_class = InvitationSerializer
    scope = reading_scope = "admin"

    def get_queryset(self) -> QuerySet[Invitation]:
        find = project_for_owning if self.request.method in SAFE_METHODS else project_for_managing
        project = find(self.request.user, self.kwargs["slug"], self.request.auth)
        return project.invitations.listed()


def _replay_invitation(view: InvitationBaseView, request, ids) -> Response:
    invitation = get_object_or_404(view.get_queryset(), pk=ids["id"])
    return Response({**InvitationSerializer(invitation).data, "link": None})


class InvitationListView(InvitationBaseView, generics.ListAPIView):
    """The invitations that have not been revoked, newest first."""

    @extend_schema(request=InvitationSerializer, responses={201: NewInvitationSerializer})
    @idempotent(_replay_invitation)
    def post(self, request, slug: str) -> IdempotentResult:
        """Create a link. A person who opens it can become a member, also with a new account."""
        project = project_for_managing(request.user, slug, request.auth)
        data = validated(InvitationSerializer, request.data)
        invitation, secret = invitations.invite(project, request.user, **data)
        link = invitations.link_to(request, invitation, secret)
        response = Response(
            {**InvitationSerializer(invitation).data, "link": link}, status.HTTP_201_CREATED
        )
        return IdempotentResult(response.status_code, {"id": invitation.pk}, lambda: response)


class InvitationDetailView(InvitationBaseView, generics.RetrieveDestroyAPIView):
    """One invitation. Deleting it revokes it: nobody can use it again. Members who used it stay."""

    lookup_field = "pk"
    lookup_url_kwarg = "id"

    def perform_destroy(self, instance: Invitation) -> None:
        invitations.revoke(instance)


class ReceivedInvitationSerializer(serializers.ModelSerializer):
    """An invitation that you have received by username."""

    project = serializers.CharField(source="project.slug", read_only=True)
    project_name = serializers.CharField(source="project.name", read_only=True)
    created_by = serializers.SlugRelatedField(slug_field="username", read_only=True)

    class Meta:
        model = Invitation
        fields = ("id", "project", "project_name", "role", "expires_at", "created_by", "created_at")


class ReceivedInvitationBaseView(generics.GenericAPIView):
    """Base of the invitations that you received. Tokens limited to a project cannot use it."""

    queryset = Invitation.objects.none()
    serializer_class = ReceivedInvitationSerializer
    scope = reading_scope = "admin"

    def get_queryset(self) -> QuerySet[Invitation]:
        if self.request.auth.project_id:
            return Invitation.objects.none()
        return Invitation.objects.for_user(self.request.user)


class ReceivedInvitationListView(ReceivedInvitationBaseView, generics.ListAPIView):
    """The invitations that you can accept, newest first."""


class ReceivedInvitationDetailView(ReceivedInvitationBaseView, generics.DestroyAPIView):
    """An invitation that you have received. Deleting it declines it."""

    lookup_field = "pk"
    lookup_url_kwarg = "id"

    @extend_schema(request=None, responses={200: MemberSerializer})
    def post(self, request, id: UUID) -> Response:
        """Accept the invitation and become a member."""
        return Response(MemberSerializer(invitations.admit(self.get_object(), request.user)).data)

    def perform_destroy(self, instance: Invitation) -> None:
        invitations.revoke(instance)
