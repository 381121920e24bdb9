"""Serializers of projects and members."""

from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.core.validators import validate_slug
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.validators import UniqueValidator

from projects import persona_template
from projects.core.api.json import StrictSerializer
from projects.models import Invitation, MemberRole, Membership, Project
from projects.models.projects import MODEL_FIELDS, project_models, validate_custom_context
from projects.permissions import ProjectArchivedError
from projects.signals import project_archived


class PartialUpdateSerializer(serializers.ModelSerializer):
    """Updates only the fields in the request, so that concurrent updates do not undo each other."""

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        instance.save(update_fields=validated_data)
        return instance


class ArchivedField(serializers.BooleanField):
    """Shows the time of archiving as a boolean: true if the object is archived."""

    def get_attribute(self, instance: Any) -> bool:
        return instance.archived_at is not None


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class PairsField(serializers.JSONField):
    """A dict with string values. Its errors are returned as a flat list."""


class SingleFileField(serializers.FileField):
    """A field for one file. Several are rejected, because only the last would be used."""

    def get_value(self, dictionary: Any) -> Any:
        if len(getattr(dictionary, "getlist", lambda name: ())(self.field_name)) > 1:
            reason = "Send one file in each request."
            raise serializers.ValidationError({self.field_name: [reason]})
        return super().get_value(dictionary)


class ConstantField(serializers.IntegerField):
    """A former setting that is now the same for all projects. Values in requests are ignored."""

    def __init__(self, value: int) -> None:
        super().__init__(source="*", read_only=True, help_text=f"Always {value}.")
        self.value = value

    def to_representation(self, project: Project) -> int:
        return self.value


class ProjectSerializer(PartialUpdateSerializer):
    archived = ArchivedField(
        required=False,
        help_text="Archived projects are read-only and not in lists. Only this can change then.",
    )
    custom_context = PairsField(
        required=False,
        validators=[validate_custom_context],
        help_text="Texts that the instructions can use as `context.KEY`.",
    )
    # Former settings of roll-ups. Their values are the constants that replaced them.
    roll_percent = ConstantField(100)
    day_after_days = ConstantField(1)
    week_after_days = ConstantField(7)
    month_after_days = ConstantField(30)

    class Meta:
        model = Project
        fields = """
            id name slug instructions chat_model system_model fallback_model allowed_models
            memory_enabled bank_max_tokens blocks_max_tokens idle_minutes review_memories
            share_raw_turns keep_deleted keep_days history_limit timezone search_language
            roll_percent day_after_days week_after_days month_after_days memory_daily_tokens
            custom_context indexed_roles min_index_chars close_after_hours archived created_at
        """.split()
        read_only_fields = ("allowed_models",)
        extra_kwargs = {
            "slug": {
                "required": False,
                "help_text": "If empty, it is generated from the name.",
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
        project = self.instance or Project()
        if not attrs.keys().isdisjoint({"instructions", "custom_context"}):
            # With the keys that the custom context has after the update.
            template = attrs.get("instructions", project.instructions)
            persona_template.check(template, attrs.get("custom_context", project.custom_context))
        for name in MODEL_FIELDS & attrs.keys():
            if attrs[name] != getattr(project, name):
                project_models().check_model(project, attrs[name], field=name)
        return attrs

    def update(self, instance: Project, validated_data: dict[str, Any]) -> Project:
        was_archived = instance.is_archived
        updated: Project = super().update(instance, validated_data)
        if updated.is_archived != was_archived:
            by = self.context["request"].user
            project_archived.send(sender=Project, project=updated, by=by)
        return updated


class MemberSerializer(PartialUpdateSerializer):
    # Converting a user to a string returns the username.
    username = serializers.CharField(source="user", max_length=150)

    class Meta:
        model = Membership
        fields = ("username", "role", "created_at")
        read_only_fields = ("created_at",)

    def validate_username(self, username: str) -> Any:
        if username != self.instance.user.get_username():
            raise serializers.ValidationError("The user of a membership cannot be changed.")
        return self.instance.user


class InvitedMemberSerializer(StrictSerializer, serializers.ModelSerializer):
    """A user who was invited by username, and becomes a member by accepting."""

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
