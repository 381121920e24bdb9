"""Serializers of prompts and receipts."""

from rest_framework import serializers


class ReceiptItemSerializer(serializers.Serializer):
    """An item of a section. An entry of the memory bank has the places, from 0, of the `lines` that
    the prompt contained, out of `of`.
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
    """The model that should have answered, and why it did not."""

    model = serializers.CharField()
    reason = serializers.CharField()


class ReceiptSerializer(serializers.Serializer):
    """The contents of a prompt, section by section, without text. `model` is the model that read
    it. Older receipts have none.
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
    """A prompt, by section and as the messages that are sent."""

    model = serializers.CharField()
    budget = serializers.IntegerField()
    tokens = serializers.IntegerField()
    sections = SectionSerializer(many=True)
    messages = PromptMessageSerializer(many=True)
