"""/api/v1/projects/{slug}/prompts/: saved prompts of a project and of the user."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.conversations import saved_prompts
from chat.models import SavedPrompt
from chat.models.saved_prompts import MAX_PROMPT_CHARS
from projects.api.members import MembershipMixin
from projects.core.api.json import validated


class SavedPromptSerializer(serializers.ModelSerializer):
    """A prompt. `variables` are the names in `{{…}}`; `markdown` is the file for an import."""

    scope = serializers.SerializerMethodField(help_text="`project` or `mine`.")
    variables = serializers.ListField(child=serializers.CharField(), read_only=True)
    markdown = serializers.SerializerMethodField()

    class Meta:
        model = SavedPrompt
        fields = ("id", "scope", "name", "text", "variables", "markdown", "updated_at")
        read_only_fields = fields

    def get_scope(self, prompt: SavedPrompt) -> str:
        return "mine" if prompt.user_id else "project"

    def get_markdown(self, prompt: SavedPrompt) -> str:
        return saved_prompts.to_markdown(prompt)


class NewSavedPromptSerializer(serializers.Serializer):
    """Either `name` and `text`, or `markdown`: a file with the name in its front matter. A prompt
    of the same name is replaced.
    """

    scope = serializers.ChoiceField(["project", "mine"], default="mine")
    name = serializers.CharField(required=False, max_length=60)
    text = serializers.CharField(required=False, max_length=MAX_PROMPT_CHARS)
    markdown = serializers.CharField(
        required=False, max_length=MAX_PROMPT_CHARS + 2_000, trim_whitespace=False
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "markdown" in attrs:
            attrs["name"], attrs["text"] = saved_prompts.from_markdown(attrs["markdown"])
        elif "name" not in attrs or "text" not in attrs:
            raise serializers.ValidationError("Give name and text, or markdown.")
        return attrs


class SavedPromptListView(MembershipMixin, APIView):
    """The prompts of the project and your own, by name."""

    @extend_schema(responses=SavedPromptSerializer(many=True))
    def get(self, request, slug: str) -> Response:
        prompts = SavedPrompt.objects.visible_to(self.membership)
        return Response(SavedPromptSerializer(prompts, many=True).data)

    @extend_schema(request=NewSavedPromptSerializer, responses={201: SavedPromptSerializer})
    def post(self, request, slug: str) -> Response:
        """Add a prompt, or replace the one of this name."""
        values = validated(NewSavedPromptSerializer, request.data)
        user = request.user if values["scope"] == "mine" else None
        prompt = saved_prompts.put(
            self.membership.project, user, values["name"], values["text"], request.user
        )
        return Response(SavedPromptSerializer(prompt).data, status.HTTP_201_CREATED)


class SavedPromptDetailView(MembershipMixin, APIView):
    def get_object(self) -> SavedPrompt:
        prompts = SavedPrompt.objects.visible_to(self.membership)
        return get_object_or_404(prompts, pk=self.kwargs["pk"])

    @extend_schema(responses=SavedPromptSerializer)
    def get(self, request, slug: str, pk) -> Response:
        """One prompt."""
        return Response(SavedPromptSerializer(self.get_object()).data)

    @extend_schema(responses={204: None})
    def delete(self, request, slug: str, pk) -> Response:
        """Delete the prompt."""
        self.get_object().delete()
        return Response(status=status.HTTP_204_NO_CONTENT)
