"""/api/v1/projects/…/profile/: what the project holds about someone."""

from django.contrib.auth import get_user_model
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Session
from memory.models import Fact
from memory.profile import profile
from projects import access


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
    """Sessions that they began, messages that they wrote, facts about them alone or told by them;
    ten of the latest of each.
    """

    user = serializers.CharField()
    sessions = serializers.IntegerField()
    messages = serializers.IntegerField()
    facts = serializers.IntegerField()
    last_seen = serializers.DateTimeField(allow_null=True)
    recent_sessions = RecentSessionSerializer(many=True)
    sample_facts = SampleFactSerializer(many=True)


class AboutSomeone(APIView):
    """What the project holds about you; owners ask about any member, without what is private."""

    @extend_schema(
        parameters=[OpenApiParameter("user", str, description="A username. Default: you.")],
        responses=ProfileSerializer,
    )
    def get(self, request, slug: str) -> Response:
        name = request.query_params.get("user", request.user.get_username())
        own = name == request.user.get_username()
        roles = access.Role.values if own else (access.Role.OWNER,)
        member = access.membership(request.user, slug, roles, request.auth)
        people = get_user_model().objects.filter(memberships__project=member.project)
        # No name has it, and the database takes none that does.
        user = get_object_or_404(people, username=name.replace("\0", ""))
        told = profile(member, user)
        return Response(ProfileSerializer({"user": name, **vars(told)}).data)
