"""Sessions, messages and prompts as JSON."""

from typing import Any

from django.db import transaction
from rest_framework import serializers

from chat.models import Message, Role, Session
from chat.models.sessions import HISTORY_LIMITS, SessionStatus
from chat.signals import session_closed
from projects.api.serializers import SavesWhatChanged


class SessionSerializer(SavesWhatChanged):
    project = serializers.CharField(source="project.slug", read_only=True)
    creator = serializers.CharField(
        source="creator.username", read_only=True, default=None, allow_null=True
    )
    history_limit = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="Messages that the model sees, moved into 50–1000. Null: the project's.",
    )
    message_count = serializers.IntegerField(source="last_seq", read_only=True)
    unsummarized_count = serializers.SerializerMethodField()
    last_role = serializers.ChoiceField(
        Role.choices, source="head.role", read_only=True, default=None, allow_null=True
    )

    class Meta:
        model = Session
        fields = (
            "id",
            "project",
            "creator",
            "title",
            "visibility",
            "remembered",
            "history_limit",
            "status",
            "version",
            "message_count",
            "unsummarized_count",
            "last_role",
            "created_at",
            "last_activity_at",
        )
        read_only_fields = ("version", "created_at", "last_activity_at")

    def get_unsummarized_count(self, session: Session) -> int:
        # The cursor is memory's, which chat does not know: there may be none.
        cursor = getattr(session, "cursor", None)
        return cursor.unsummarised_messages if cursor is not None else 0

    def validate_history_limit(self, limit: int | None) -> int | None:
        least, most = HISTORY_LIMITS
        return limit if limit is None else min(max(limit, least), most)

    @transaction.atomic
    def update(self, instance: Session, validated_data: dict[str, Any]) -> Session:
        locked = Session.objects.select_for_update().get(pk=instance.pk)
        super().update(instance, validated_data | {"version": locked.version + 1})
        if locked.status == SessionStatus.ACTIVE and instance.status == SessionStatus.CLOSED:
            session_closed.send(sender=Session, session=instance)
        return instance


class MessageSerializer(serializers.ModelSerializer):
    author = serializers.CharField(source="speaker", read_only=True)
    content = serializers.CharField(source="text", read_only=True)

    class Meta:
        model = Message
        fields = (
            "id",
            "session",
            "seq",
            "parent",
            "role",
            "author",
            "content",
            "status",
            "error",
            "version",
            "remembered",
            "model",
            "input_tokens",
            "output_tokens",
            "cost",
            "created_at",
        )
        read_only_fields = fields


class NewMessageSerializer(serializers.Serializer):
    """What is said now and answered, or, without a reply, what was said elsewhere."""

    content = serializers.CharField(trim_whitespace=False, max_length=500_000)
    reply = serializers.BooleanField(default=True)
    role = serializers.ChoiceField((Role.USER.value, Role.ASSISTANT.value), required=False)
    author = serializers.CharField(required=False, max_length=120)
    created_at = serializers.DateTimeField(required=False)

    def validate_content(self, content: str) -> str:
        if not content.strip():
            raise serializers.ValidationError("This field may not be blank.")
        return content

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        foreign = {"role", "author", "created_at"} & attrs.keys()
        if attrs["reply"] and foreign:
            reason = 'Only with "reply": false, for what was said elsewhere.'
            raise serializers.ValidationError({name: [reason] for name in sorted(foreign)})
        return attrs


class ExchangeSerializer(serializers.Serializer):
    """A message and the reply to it, null when none was asked for."""

    message = MessageSerializer()
    reply = MessageSerializer(allow_null=True)


class ItemSerializer(serializers.Serializer):
    kind = serializers.CharField()
    id = serializers.UUIDField(allow_null=True)
    revision = serializers.IntegerField()
    tokens = serializers.IntegerField()
    label = serializers.CharField()


class SectionSerializer(serializers.Serializer):
    name = serializers.CharField()
    tokens = serializers.IntegerField()
    text = serializers.SerializerMethodField()
    items = ItemSerializer(many=True)

    def get_text(self, section) -> str:
        return "\n\n".join(said.text for said in section.said)


class SaidSerializer(serializers.Serializer):
    role = serializers.CharField()
    content = serializers.CharField(source="text")


class PromptSerializer(serializers.Serializer):
    """What a reply is told: section by section, and as the messages that are sent."""

    model = serializers.CharField()
    budget = serializers.IntegerField()
    tokens = serializers.IntegerField()
    sections = SectionSerializer(many=True)
    messages = SaidSerializer(source="said", many=True)
