"""/api/v1/projects/…/profile/ and …/export/: a person's data, and exports of it or of a project."""

from django.contrib.auth import get_user_model
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Session
from memory import profile
from memory.models import Fact
from memory.portability import ExportScope
from memory.portability.exporting import MEDIA_TYPE, download
from projects.models import MemberRole
from projects.permissions import membership, project_for_owning, project_for_reading


class RecentSessionSerializer(serializers.ModelSerializer):
    class Meta:
        model = Session
        fields = ("id", "title", "visibility", "last_activity_at")


class SampleFactSerializer(serializers.ModelSerializer):
    until = serializers.DateTimeField(allow_null=True)

    class Meta:
        model = Fact
        fields = ("id", "subject", "predicate", "object", "confidence", "valid_from", "until")


class ProfileSerializer(serializers.Serializer):
    """The number of sessions that the person began, of messages that they wrote, and of facts that
    are about them or based on their messages; with the ten latest sessions and facts.
    """

    user = serializers.CharField()
    sessions = serializers.IntegerField()
    messages = serializers.IntegerField()
    facts = serializers.IntegerField()
    last_seen = serializers.DateTimeField(allow_null=True)
    recent_sessions = RecentSessionSerializer(many=True)
    sample_facts = SampleFactSerializer(many=True)


class ProfileView(APIView):
    """The data that the project stores about you. Owners may request the data about any member,
    without private data.
    """

    @extend_schema(
        parameters=[OpenApiParameter("user", str, description="A username. Default: you.")],
        responses=ProfileSerializer,
    )
    def get(self, request, slug: str) -> Response:
        name = request.query_params.get("user", request.user.get_username())
        own = name == request.user.get_username()
        roles = MemberRole.values if own else (MemberRole.OWNER,)
        member = membership(request.user, slug, roles, request.auth)
        people = get_user_model().objects.filter(memberships__project=member.project)
        # PostgreSQL rejects NUL characters, and no username contains one.
        user = get_object_or_404(people, username=name.replace("\0", ""))
        data = vars(profile.profile(member, user))
        return Response(ProfileSerializer({"user": name, **data}).data)


class ProjectExportView(APIView):
    """A zip file of JSON Lines and their schema, which another Strata server can import.

    Owners can export the project, without other members' private data. With `user=me`, members
    export their own data.
    """

    @extend_schema(
        parameters=[
            OpenApiParameter("user", str, enum=["me"], description="`me`: only your own data.")
        ],
        responses={(200, MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request, slug: str) -> HttpResponseBase:
        user = request.query_params.get("user", "")
        if user not in ("", "me"):
            raise ValidationError({"user": ["Use `me`, or omit the parameter."]})
        find = project_for_reading if user else project_for_owning
        project = find(request.user, slug, request.auth)
        return download(ExportScope(project, request.user, only_own=bool(user)))
