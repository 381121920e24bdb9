"""Serializers of sessions, messages and prompts."""

from copy import copy
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from chat.api.attachments import AttachmentSerializer, AttachmentsField
from chat.attachments import attachments_by_message, attachments_of
from chat.conversations.edits import MAX_EMOJI_CHARS
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.conversations.read_state import MessageRelations, message_relations, relations_of
from chat.conversations.sessions import (
    MAX_TAG_CHARS,
    MAX_TAGS,
    clamp_history_limit,
    clean_tags,
    create_session,
    update_session,
)
from chat.importers.base import plausible_time
from chat.models import Message, MessageRevision, Role, Session
from chat.providers.catalogue import check_model
from projects.api.serializers import ArchivedField
from projects.models import validate_model_name

BLANK = "This field may not be blank."


class TimeField(serializers.DateTimeField):
    """A time between 1970 and tomorrow."""

    def to_internal_value(self, value: Any) -> datetime:
        at = super().to_internal_value(value)
        if plausible_time(at) is None:
            raise serializers.ValidationError("This is before 1970 or after tomorrow.")
        return at


class SessionSerializer(serializers.ModelSerializer):
    """A session. To read it, annotate it with `chat.conversations.sessions.with_list_columns`."""

    project = serializers.CharField(source="project.slug", read_only=True)
    creator = serializers.CharField(
        source="creator.username", read_only=True, default=None, allow_null=True
    )
    history_limit = serializers.IntegerField(
        required=False,
        allow_null=True,
        help_text="Maximum number of messages in the prompt, 50–1000; other numbers become the "
        "nearest of these. Null: the project's setting.",
    )
    archived = ArchivedField(required=False, help_text="Hidden from lists, but not deleted.")
    tags = serializers.ListField(
        child=serializers.CharField(max_length=MAX_TAG_CHARS), required=False, max_length=MAX_TAGS
    )
    message_count = serializers.IntegerField(read_only=True)
    unsummarized_count = serializers.IntegerField(
        read_only=True, default=0, help_text="Number of messages that no summary covers yet."
    )
    last_role = serializers.ChoiceField(Role.choices, read_only=True, allow_null=True)

    class Meta:
        model = Session
        fields = """
            id project creator kind title visibility remembered history_limit chat_model temperature
            reasoning_effort status pinned archived tags version message_count unsummarized_count
            last_role created_at last_activity_at
        """.split()
        read_only_fields = ("kind", "version", "created_at", "last_activity_at")

    def validate_chat_model(self, name: str) -> str:
        project = self.instance.project if self.instance else self.context["view"].project
        if self.instance is None or name != self.instance.chat_model:
            check_model(project, name, field="chat_model")
        return name

    def validate_tags(self, tags: list[str]) -> list[str]:
        return clean_tags(tags)

    def validate_history_limit(self, limit: int | None) -> int | None:
        return clamp_history_limit(limit)

    def create(self, validated_data: dict[str, Any]) -> Session:
        return create_session(**validated_data)

    def update(self, instance: Session, validated_data: dict[str, Any]) -> Session:
        by, version = self.context["request"].user, self.context.get("at_version")
        return update_session(instance, version, by=by, **validated_data)


class ReactionSerializer(serializers.Serializer):
    emoji = serializers.CharField()
    count = serializers.IntegerField()
    mine = serializers.BooleanField()


class ToolCallSerializer(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    arguments = serializers.CharField(
        help_text="The arguments as the model wrote them, usually JSON."
    )


class LookupSerializer(serializers.Serializer):
    tool = serializers.CharField()
    arguments = serializers.CharField(
        help_text="The arguments as the model wrote them, usually JSON."
    )
    result_count = serializers.IntegerField(
        allow_null=True, help_text="Number of results; null during the lookup and after an error."
    )
    error = serializers.CharField(help_text="The reason why the call failed; empty if it did not.")


class MessageListSerializer(serializers.ListSerializer):
    """Loads the relations of all messages in a fixed number of queries."""

    def to_representation(self, data: Any) -> Any:
        messages = list(data)
        self.context["relations"] = message_relations(messages, self.context.get("reader"))
        self.context["attachments"] = attachments_by_message([message.pk for message in messages])
        return super().to_representation(messages)


class MessageSerializer(serializers.ModelSerializer):
    """A message. A deleted message is still listed, without its text.

    `reader` in the serializer context is the user whose own reactions are marked.
    """

    author = serializers.CharField(source="speaker", read_only=True)
    recorded_by = serializers.SerializerMethodField(
        help_text="The username of the account that recorded the message in the name of `author`."
    )
    content = serializers.SerializerMethodField()
    tool_calls = serializers.SerializerMethodField(help_text="The tool calls of a reply.")
    lookups = serializers.SerializerMethodField(
        help_text="What the model looked up with Strata's own tools."
    )
    attachments = serializers.SerializerMethodField()
    reactions = serializers.SerializerMethodField()
    siblings = serializers.SerializerMethodField(
        help_text="The ids of the alternatives of this message in order, including itself: at most "
        "the 100 before it and the 100 after it."
    )

    class Meta:
        model = Message
        list_serializer_class = MessageListSerializer
        fields = """
            id session seq parent role author recorded_by content tool_calls tool_call_id lookups
            status error version remembered model input_tokens output_tokens cost created_at
            edited_at deleted_at attachments reactions siblings
        """.split()
        read_only_fields = fields
        extra_kwargs = {"error": {"help_text": "Why the reply failed, or a note on its result."}}

    def get_fields(self) -> dict[str, serializers.Field]:
        # Shallow copies, because a deep copy builds each field again. Binding only sets attributes.
        return {name: copy(field) for name, field in _fields().items()}

    def get_recorded_by(self, message: Message) -> str | None:
        return message.recorded_by or None

    def get_content(self, message: Message) -> str:
        return message.text if message.deleted_at is None else ""

    @extend_schema_field(ToolCallSerializer(many=True))
    def get_tool_calls(self, message: Message) -> Any:
        calls = message.calls if message.deleted_at is None else ()
        return ToolCallSerializer(calls, many=True).data if calls else []

    @extend_schema_field(LookupSerializer(many=True))
    def get_lookups(self, message: Message) -> Any:
        lookups = message.loaded_lookups if message.deleted_at is None else ()
        return LookupSerializer(lookups, many=True).data if lookups else []

    @extend_schema_field(AttachmentSerializer(many=True))
    def get_attachments(self, message: Message) -> Any:
        known = self.context.setdefault("attachments", {})
        if message.pk not in known:
            known[message.pk] = attachments_of(message.pk)
        shown = known[message.pk] if message.deleted_at is None else ()
        return AttachmentSerializer(shown, many=True).data if shown else []

    @extend_schema_field(ReactionSerializer(many=True))
    def get_reactions(self, message: Message) -> Any:
        reactions = self._relations(message).reactions
        return ReactionSerializer(reactions, many=True).data if reactions else []

    def get_siblings(self, message: Message) -> list[UUID]:
        return list(self._relations(message).nearest)

    def _relations(self, message: Message) -> MessageRelations:
        known = self.context.setdefault("relations", {})
        if message.pk not in known:
            known[message.pk] = relations_of(message, self.context.get("reader"))
        return known[message.pk]


@cache
def _fields() -> dict[str, serializers.Field]:
    """Return the fields. They are cached, because building them takes longer than serialising."""
    return serializers.ModelSerializer.get_fields(MessageSerializer())


class StaleSerializer(serializers.Serializer):
    """The reason why a change was rejected, and the current message."""

    detail = serializers.CharField()
    message = MessageSerializer()


class RevisionSerializer(serializers.ModelSerializer):
    """An earlier text with its version, and the user and time of the edit that replaced it."""

    content = serializers.CharField(source="text", read_only=True)
    edited_by = serializers.CharField(
        source="edited_by.username", read_only=True, default=None, allow_null=True
    )

    class Meta:
        model = MessageRevision
        fields = ("version", "content", "edited_by", "edited_at")
        read_only_fields = fields


@extend_schema_serializer(examples=[OpenApiExample("Yes", {"emoji": "👍"}, request_only=True)])
class EmojiSerializer(serializers.Serializer):
    emoji = serializers.CharField(max_length=MAX_EMOJI_CHARS)


class ShareLinkSerializer(serializers.Serializer):
    url = serializers.URLField(
        help_text="The page of the conversation, for members of its project."
    )


class ForkSerializer(serializers.Serializer):
    """`message` is the last message to copy. Default: the last message of the active path."""

    message = serializers.UUIDField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        session = self.context["session"]
        pk = attrs.get("message", session.head_id)
        message = session.messages.filter(pk=pk).first()
        if message is None:
            raise serializers.ValidationError({"message": ["This session has no such message."]})
        message.session = session
        return {"message": message}


class RegenerateSerializer(serializers.Serializer):
    """The model for the new reply. Default: the session's model."""

    model = serializers.CharField(
        required=False, allow_blank=True, max_length=200, validators=[validate_model_name]
    )

    def validate_model(self, name: str) -> str:
        check_model(self.context["project"], name, field="model")
        return name


class ContentSerializer(serializers.Serializer):
    """A new text for `message` in the context, stored unchanged. Blank only if there are images."""

    content = serializers.CharField(
        trim_whitespace=False, max_length=MAX_MESSAGE_CHARS, allow_blank=True
    )

    def validate_content(self, content: str) -> str:
        if not content.strip() and not self.context["message"].attachments.exists():
            raise serializers.ValidationError(BLANK)
        return content


@extend_schema_serializer(
    examples=[
        OpenApiExample("Question", {"content": "When is the cutover?"}, request_only=True),
        OpenApiExample(
            "Record of another system",
            {
                "content": "On 3 March.",
                "reply": False,
                "author": "Ana",
                "created_at": "2026-03-02T09:00:00Z",
            },
            request_only=True,
        ),
    ]
)
class NewMessageSerializer(serializers.Serializer):
    """A message to reply to. With `reply` false, a message from another system that gets no reply.

    `content` may be blank if there are images.
    """

    content = serializers.CharField(
        trim_whitespace=False, max_length=MAX_MESSAGE_CHARS, allow_blank=True, required=False
    )
    attachments = AttachmentsField(required=False)
    reply = serializers.BooleanField(default=True)
    role = serializers.ChoiceField((Role.USER.value, Role.ASSISTANT.value), required=False)
    author = serializers.CharField(required=False, max_length=120)
    created_at = TimeField(required=False)

    def get_fields(self) -> dict[str, serializers.Field]:
        return {name: copy(field) for name, field in self._declared_fields.items()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = {"content": "", "attachments": []} | attrs
        if not attrs["attachments"] and not attrs["content"].strip():
            raise serializers.ValidationError({"content": [BLANK]})
        record_fields = {"role", "author", "created_at"} & attrs.keys()
        if attrs["reply"] and record_fields:
            reason = 'Only with "reply": false, for messages from another system.'
            raise serializers.ValidationError({name: [reason] for name in sorted(record_fields)})
        return attrs


class ExchangeSerializer(serializers.Serializer):
    """A message and its reply. `reply` is null if no reply was requested."""

    message = MessageSerializer()
    reply = MessageSerializer(allow_null=True)
