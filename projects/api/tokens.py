"""/api/v1/tokens/: what programs show instead of a password."""

from typing import Any

from django.core.validators import slug_re
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.response import Response

from projects.access import projects_for
from projects.api.idempotency import Made, idempotent
from projects.api.pagination import NewestFirst
from projects.models import SCOPES, Project, Token


class OwnProject(serializers.SlugRelatedField):
    """The slug of a project that the request may open."""

    def get_queryset(self) -> QuerySet[Project]:
        request = self.context["request"]
        return projects_for(request.user, request.auth)

    def to_internal_value(self, data: Any) -> Project:
        # Nothing else is asked for: the database refuses NUL, and no answer can hold a surrogate.
        if not isinstance(data, str) or not slug_re.fullmatch(data):
            raise serializers.ValidationError("There is no such project.")
        return super().to_internal_value(data)


class TokenSerializer(serializers.ModelSerializer):
    """A token without what opens anything. A new one can do no more than the context's `request`
    was allowed to: by default, as much.
    """

    id = serializers.UUIDField(source="public_id", read_only=True)
    name = serializers.CharField(max_length=120, allow_blank=True, default="")
    project = OwnProject(
        slug_field="slug",
        queryset=Project.objects.none(),
        allow_null=True,
        required=False,
        help_text="The slug of the one project it opens. Null: all of yours.",
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(SCOPES), allow_empty=False, required=False
    )
    created_at = serializers.DateTimeField(source="created", read_only=True)
    expires_at = serializers.DateTimeField(
        source="expiry", allow_null=True, required=False, help_text="Null: never."
    )
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="To the minute."
    )

    class Meta:
        model = Token
        fields: tuple[str, ...] = (
            "id",
            "name",
            "project",
            "scopes",
            "created_at",
            "expires_at",
            "last_used_at",
        )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        mine = self.context["request"].auth
        given = {"project": mine.project, "scopes": mine.scopes, "expiry": mine.expiry} | attrs
        given["scopes"] = [scope for scope in SCOPES if scope in given["scopes"]]
        refused = {}
        if given["project"] is None and mine.project_id:
            refused["project"] = "This token opens one project, and makes tokens for that alone."
        if set(given["scopes"]) - set(mine.scopes):
            refused["scopes"] = f"This token may give {', '.join(mine.scopes)}."
        if mine.expiry and (given["expiry"] is None or given["expiry"] > mine.expiry):
            refused["expires_at"] = "Not after this token expires itself."
        if given["expiry"] and given["expiry"] <= timezone.now():
            refused["expires_at"] = "This is past."
        if refused:
            raise serializers.ValidationError({name: [why] for name, why in refused.items()})
        return given


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="What to show as `Authorization: Bearer TOKEN`. Told this once: null when the "
        "answer is given again.",
    )

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")


class ByPublicId(NewestFirst):
    ordering = "-public_id"


class MyTokens(generics.GenericAPIView):
    """What both routes stand on: one's own tokens, or those of the one project that the token
    opens. They take the scope `admin`, reading too.
    """

    queryset = Token.objects.none()
    serializer_class = TokenSerializer
    scope = reading_scope = "admin"

    def get_queryset(self) -> QuerySet[Token]:
        mine = Token.objects.filter(user=self.request.user).select_related("project")
        project = self.request.auth.project_id
        return mine.filter(project=project) if project else mine


def _tell_again(view: MyTokens, request, made) -> Response:
    token = get_object_or_404(view.get_queryset(), public_id=made["id"])
    return Response({**TokenSerializer(token).data, "token": None})


class Tokens(MyTokens, generics.ListAPIView):
    """Your tokens, the newest first."""

    pagination_class = ByPublicId

    @extend_schema(request=TokenSerializer, responses={201: NewTokenSerializer})
    @idempotent(_tell_again)
    def post(self, request) -> Made:
        """Makes one that can do no more than the one that asks: by default, as much."""
        wish = self.get_serializer(data=request.data)
        wish.is_valid(raise_exception=True)
        made, secret = Token.issue(request.user, **wish.validated_data)
        told = {**TokenSerializer(made).data, "token": secret}
        code = status.HTTP_201_CREATED
        return Made(code, {"id": made.public_id}, lambda: Response(told, code))


class OneToken(MyTokens, generics.RetrieveDestroyAPIView):
    """One token. To delete it revokes it: its next request is refused, and its streams end within
    seconds.
    """

    lookup_field = "public_id"
    lookup_url_kwarg = "id"


urlpatterns = [
    path("", Tokens.as_view(), name="api-tokens"),
    path("<uuid:id>/", OneToken.as_view(), name="api-token"),
]
