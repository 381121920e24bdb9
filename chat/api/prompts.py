"""Serializers of prompts and receipts."""

from rest_framework import serializers


class PromptQuerySerializer(serializers.Serializer):
    content = serializers.CharField(
        default="", allow_blank=True, help_text="The text of the next message."
    )


class ReceiptItemSerializer(serializers.Serializer):
    """An item of a section. For an entry of the memory bank, `lines` are the indexes (from 0) of
    its lines in the prompt, and `of` is the number of all its lines.
    """

    kind = serializers.CharField()
    id = serializers.UUIDField(allow_null=True)
    revision = serializers.IntegerField()
    tokens = serializers.IntegerField()
    lines = serializers.ListField(child=serializers.IntegerField(), required=False)
    of = serializers.IntegerField(required=False)


class ReceiptSectionSerializer(serializers.Serializer):
    name = serializers.CharField()
    tokens = serializers.IntegerField()
    items = ReceiptItemSerializer(many=True)


class FallbackSerializer(serializers.Serializer):
    """The model that was tried first, and why it did not answer."""

    model = serializers.CharField()
    reason = serializers.CharField()


class ReceiptSerializer(serializers.Serializer):
    """The contents of a prompt by section, without text. `model` is the model that received the
    prompt. Older receipts do not have it.
    """

    model = serializers.CharField(required=False)
    fallback = FallbackSerializer(required=False)
    budget = serializers.IntegerField()
    sections = ReceiptSectionSerializer(many=True)


class ItemSerializer(ReceiptItemSerializer):
    label = serializers.CharField()


class SectionSerializer(serializers.Serializer):
    name = serializers.CharField()
    tokens = serializers.IntegerField()
    text = serializers.SerializerMethodField()
    items = ItemSerializer(many=True)

    def get_text(self, section) -> str:
        return "\n\n".join(message.text for message in section.messages)


class PromptMessageSerializer(serializers.Serializer):
    role = serializers.CharField()
    content = serializers.CharField(source="text")


class PromptSerializer(serializers.Serializer):
    """A prompt: its sections, and the messages that the model receives."""

    model = serializers.CharField()
    budget = serializers.IntegerField()
    tokens = serializers.IntegerField()
    sections = SectionSerializer(many=True)
    messages = PromptMessageSerializer(many=True)
