"""JSON of projects and members."""

from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.core.validators import validate_slug
from django.utils import timezone
from rest_framework import serializers
from rest_framework.validators import UniqueValidator

from projects.models import Invitation, MemberRole, Membership, Project
from projects.permissions import ProjectArchivedError


class PartialUpdateSerializer(serializers.ModelSerializer):
    """Writes only the fields in the request, so that concurrent updates do not undo each other."""

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        instance.save(update_fields=validated_data)
        return instance


class ArchivedField(serializers.BooleanField):
    """True if the object has a time at which it was archived."""

    def get_attribute(self, instance: Any) -> bool:
        return instance.archived_at is not None


class ProjectSerializer(PartialUpdateSerializer):
    archived = ArchivedField(
        required=False, help_text="Read-only and listed apart. Only this field can change then."
    )

    class Meta:
        model = Project
        fields = (
            "id",
            "name",
            "slug",
            "instructions",
            "chat_model",
            "system_model",
            "memory_enabled",
            "bank_max_tokens",
            "blocks_max_tokens",
            "idle_minutes",
            "review_memories",
            "share_raw_turns",
            "keep_deleted",
            "keep_days",
            "history_limit",
            "timezone",
            "search_language",
            "roll_percent",
            "day_after_days",
            "week_after_days",
            "month_after_days",
            "memory_daily_tokens",
            "archived",
            "created_at",
        )
        extra_kwargs = {
            "slug": {
                "required": False,
                "help_text": "Empty: made from the name.",
                "validators": [
                    validate_slug,
                    UniqueValidator(Project.objects.all(), message="This slug is not available."),
                ],
            }
        }

    def validate_slug(self, slug: str) -> str:
        if self.instance is not None and slug != self.instance.slug:
            raise serializers.ValidationError("The slug of a project cannot be changed.")
        return slug

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        was_archived = self.instance is not None and self.instance.is_archived
        archived = attrs.pop("archived", was_archived)
        if archived != was_archived:
            attrs["archived_at"] = timezone.now() if archived else None
        elif was_archived and attrs:
            raise ProjectArchivedError
        return attrs


class MemberSerializer(PartialUpdateSerializer):
    # A user's str() is the username.
    username = serializers.CharField(source="user", max_length=150)

    class Meta:
        model = Membership
        fields = ("username", "role", "created_at")
        read_only_fields = ("created_at",)

    def validate_username(self, username: str) -> Any:
        if username != self.instance.user.get_username():
            raise serializers.ValidationError("The user of a membership cannot be changed.")
        return self.instance.user


class InvitedMemberSerializer(serializers.ModelSerializer):
    """A user who was invited by name, and is a member once they accept."""

    username = serializers.CharField(
        max_length=150, validators=[get_user_model().username_validator]
    )
    role = serializers.ChoiceField(MemberRole.choices, default=MemberRole.EDITOR)
    state = serializers.SerializerMethodField()
    invitation = serializers.UUIDField(source="pk", read_only=True)

    class Meta:
        model = Invitation
        fields = ("username", "role", "state", "invitation", "created_at")
        read_only_fields = ("created_at",)

    def get_state(self, invitation: Invitation) -> Literal["invited"]:
        return "invited"
