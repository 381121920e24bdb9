"""/api/v1/tokens/: your API tokens."""

from typing import Any

from django.core.validators import slug_re
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.response import Response

from projects.accounts.tokens import notify_of_token
from projects.api.idempotency import IdempotentResult, idempotent
from projects.core.api.json import StrictSerializer, validated
from projects.core.api.pagination import NewestFirstPagination
from projects.models import SCOPES, Project, Token
from projects.permissions import projects_for


class ProjectSlugField(serializers.SlugRelatedField):
    """The slug of a project to which the request has access."""

    def get_queryset(self) -> QuerySet[Project]:
        request = self.context["request"]
        return projects_for(request.user, request.auth)

    def to_internal_value(self, data: Any) -> Project:
        # Only slugs may reach the query: PostgreSQL rejects NUL characters, and a surrogate cannot
        # be encoded in the error response.
        if not isinstance(data, str) or not slug_re.fullmatch(data):
            raise serializers.ValidationError("There is no such project.")
        return super().to_internal_value(data)


class TokenSerializer(StrictSerializer, serializers.ModelSerializer):
    """A token without its secret. A new token can have at most the rights of the token that
    authenticated the request. By default it has the same rights.
    """

    id = serializers.UUIDField(source="public_id", read_only=True)
    name = serializers.CharField(max_length=120, allow_blank=True, default="")
    project = ProjectSlugField(
        slug_field="slug",
        queryset=Project.objects.none(),
        allow_null=True,
        required=False,
        help_text="The slug of the project to which the token is limited. Null: all your projects.",
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
        fields = "id name project scopes created_at expires_at last_used_at".split()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        own = self.context["request"].auth
        fields = {"project": own.project, "scopes": own.scopes, "expiry": own.expiry} | attrs
        fields["scopes"] = [scope for scope in SCOPES if scope in fields["scopes"]]
        errors = {}
        if fields["project"] is None and own.project_id:
            errors["project"] = (
                "This token is limited to one project and creates tokens for that project only."
            )
        if set(fields["scopes"]) - set(own.scopes):
            errors["scopes"] = f"This token can grant only {', '.join(own.scopes)}."
        if own.expiry and (fields["expiry"] is None or fields["expiry"] > own.expiry):
            errors["expires_at"] = (
                "A token cannot be valid for longer than the token that creates it."
            )
        if fields["expiry"] and fields["expiry"] <= timezone.now():
            errors["expires_at"] = "This is in the past."
        if errors:
            raise serializers.ValidationError({name: [error] for name, error in errors.items()})
        return fields


class NewTokenSerializer(TokenSerializer):
    token = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="For the header `Authorization: Bearer TOKEN`. It is shown only once: null when "
        "the request is repeated.",
    )

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class TokenPagination(NewestFirstPagination):
    ordering = "-public_id"


class TokenBaseView(generics.GenericAPIView):
    """Your tokens. With a token for one project: your tokens for that project. Listing them
    requires the scope `admin`, not `read`.
    """

    queryset = Token.objects.none()
    serializer_class = TokenSerializer
    scope = reading_scope = "admin"

    def get_queryset(self) -> QuerySet[Token]:
        tokens = Token.objects.filter(user=self.request.user).select_related("project")
        project = self.request.auth.project_id
        return tokens.filter(project=project) if project else tokens


def _replay_token(view: TokenBaseView, request, ids) -> Response:
    token = get_object_or_404(view.get_queryset(), public_id=ids["id"])
    return Response({**TokenSerializer(token).data, "token": None})


class TokenListView(TokenBaseView, generics.ListAPIView):
    """Your tokens, the newest first."""

    pagination_class = TokenPagination

    @extend_schema(request=TokenSerializer, responses={201: NewTokenSerializer})
    @idempotent(_replay_token)
    def post(self, request) -> IdempotentResult:
        """Creates a token with the rights of the request's token, or with fewer."""
        data = validated(TokenSerializer, request.data, request=request)
        token, secret = Token.issue(request.user, **data)

        def respond() -> Response:
            notify_of_token(request, token)
            body = {**TokenSerializer(token).data, "token": secret}
            return Response(body, status.HTTP_201_CREATED)

        return IdempotentResult(status.HTTP_201_CREATED, {"id": token.public_id}, respond)


class TokenDetailView(TokenBaseView, generics.RetrieveDestroyAPIView):
    """One token. Deleting it revokes it: requests are refused, streams end within seconds."""

    lookup_field = "public_id"
    lookup_url_kwarg = "id"
