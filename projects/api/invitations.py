"""/api/v1/projects/{slug}/invitations/: links into a project, for its owners."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.response import Response

from projects import invitations
from projects.access import project_for_owning
from projects.api.idempotency import Made, idempotent
from projects.models import Invitation, Role, Standing
from projects.models.invitations import MOST_USES


class InvitationSerializer(serializers.ModelSerializer):
    """A link without what it leads in by."""

    role = serializers.ChoiceField(Role.choices, default=Role.EDITOR)
    expires_at = serializers.DateTimeField(
        required=False, help_text="At most a year from now; by default a week."
    )
    max_uses = serializers.IntegerField(
        min_value=1,
        max_value=MOST_USES,
        allow_null=True,
        default=1,
        help_text="How many it lets in. Null: all who have it.",
    )
    state = serializers.ChoiceField(Standing.choices, read_only=True)
    created_by = serializers.SlugRelatedField(slug_field="username", read_only=True)

    class Meta:
        model = Invitation
        fields: tuple[str, ...] = (
            "id",
            "role",
            "state",
            "expires_at",
            "max_uses",
            "uses",
            "created_by",
            "created_at",
        )
        read_only_fields = ("uses",)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        now = timezone.now()
        until = attrs.setdefault("expires_at", now + invitations.USUAL_LIFETIME)
        if not now < until <= now + invitations.LONGEST_LIFETIME:
            raise serializers.ValidationError({"expires_at": ["Within a year from now."]})
        return attrs


class NewInvitationSerializer(InvitationSerializer):
    link = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="What to hand on. Told this once: null when the answer is given again.",
    )

    class Meta(InvitationSerializer.Meta):
        fields = (*InvitationSerializer.Meta.fields, "link")


class OwnersOnly(generics.GenericAPIView):
    """What both routes stand on: owners alone make and see links, with the scope `admin`."""

    queryset = Invitation.objects.none()
    serializer_class = InvitationSerializer
    scope = reading_scope = "admin"

    def get_queryset(self) -> QuerySet[Invitation]:
        project = project_for_owning(self.request.user, self.kwargs["slug"], self.request.auth)
        return project.invitations.standing().select_related("created_by")


def _tell_again(view: OwnersOnly, request, made) -> Response:
    invitation = get_object_or_404(view.get_queryset(), pk=made["id"])
    return Response({**InvitationSerializer(invitation).data, "link": None})


class Invitations(OwnersOnly, generics.ListAPIView):
    """The links that nobody has taken back, the newest first."""

    @extend_schema(request=InvitationSerializer, responses={201: NewInvitationSerializer})
    @idempotent(_tell_again)
    def post(self, request, slug: str) -> Made:
        """Makes a link: who opens it becomes a member, with an account that they have or make."""
        project = project_for_owning(request.user, slug, request.auth)
        wish = self.get_serializer(data=request.data)
        wish.is_valid(raise_exception=True)
        made, secret = invitations.invite(project, request.user, **wish.validated_data)
        link = request.build_absolute_uri(reverse("invitation", args=[slug, secret]))
        told = {**InvitationSerializer(made).data, "link": link}
        code = status.HTTP_201_CREATED
        return Made(code, {"id": made.pk}, lambda: Response(told, code))


class OneInvitation(OwnersOnly, generics.RetrieveDestroyAPIView):
    """One link. To delete it takes it back: it lets nobody in any more. Who came by it stays."""

    lookup_field = "pk"
    lookup_url_kwarg = "id"

    def perform_destroy(self, instance: Invitation) -> None:
        invitations.revoke(instance)


urlpatterns = [
    path("projects/<slug:slug>/invitations/", Invitations.as_view(), name="api-invitations"),
    path(
        "projects/<slug:slug>/invitations/<uuid:id>/",
        OneInvitation.as_view(),
        name="api-invitation",
    ),
]
