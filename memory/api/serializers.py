"""Serializers of the memory bank and its entries."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.models import Visibility
from memory.forms.entries import MAX_SUMMARY_CHARS
from memory.layers.bank import Bank
from memory.layers.bank_cache import ProjectBank
from memory.models import Entry, EntryStatus, ModerationReason, ReviewReason
from memory.moderation import entry_operations
from memory.permissions import may_decide


class LeftOutSerializer(serializers.Serializer):
    id = serializers.UUIDField()
    reason = serializers.CharField()


class BankSerializer(serializers.Serializer):
    """The rendered memory bank, as in prompts. `version` rises when the text changes; a past bank
    has none.
    """

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    version = serializers.IntegerField(allow_null=True)
    left_out = LeftOutSerializer(many=True)


def bank_data(bank: Bank | ProjectBank, max_tokens: int) -> dict[str, Any]:
    """Return the data of BankSerializer."""
    return {
        "text": bank.text,
        "tokens": bank.tokens,
        "max_tokens": max_tokens,
        "version": bank.version if isinstance(bank, ProjectBank) else None,
        "left_out": [{"id": id, "reason": reason} for id, reason in bank.left_out],
    }


class CoversSerializer(serializers.Serializer):
    session = serializers.UUIDField()
    first_seq = serializers.IntegerField()
    last_seq = serializers.IntegerField()


class LossSerializer(serializers.Serializer):
    """A name, date, number or identifier of the children that the digest does not contain. A long
    list ends with the kind `more`, whose text is the number of further losses.
    """

    kind = serializers.CharField()
    text = serializers.CharField()


class EntrySerializer(serializers.ModelSerializer):
    """One entry. The summary is empty while it is withheld."""

    label = serializers.CharField(read_only=True)
    children = serializers.PrimaryKeyRelatedField(many=True, read_only=True)
    covers = serializers.SerializerMethodField()
    state = serializers.ChoiceField(
        EntryStatus.choices, help_text="May be set to live and to hidden."
    )
    waits_because = serializers.ChoiceField(ReviewReason.choices, read_only=True, allow_blank=True)
    losses = LossSerializer(many=True, read_only=True)
    reason = serializers.ChoiceField(
        ModerationReason.choices,
        write_only=True,
        required=False,
        help_text="The reason of the change, for the activity log.",
    )

    class Meta:
        model = Entry
        fields = (
            "id",
            "granularity",
            "period_key",
            "label",
            "summary",
            "tokens",
            "message_count",
            "state",
            "pinned",
            "withheld",
            "waits_because",
            "losses",
            "particulars",
            "revision",
            "parent",
            "children",
            "covers",
            "first_source_at",
            "last_source_at",
            "written_by",
            "written_at",
            "reason",
        )
        _declared = {"state", "reason", "waits_because", "losses"}
        read_only_fields = tuple(sorted({*fields} - {"summary", "pinned"} - _declared))
        extra_kwargs = {"summary": {"max_length": MAX_SUMMARY_CHARS}}

    def to_representation(self, instance: Entry) -> dict[str, Any]:
        data = super().to_representation(instance)
        return data | {"summary": "", "losses": []} if instance.withheld else data

    @extend_schema_field(CoversSerializer(allow_null=True))
    def get_covers(self, entry: Entry) -> dict[str, Any] | None:
        """Return the covered range; null for digests and other users' private sessions."""
        session = entry.session
        reader = self.context["request"].user
        if session is None or not (
            session.visibility == Visibility.PROJECT or session.creator_id == reader.pk
        ):
            return None
        return {"session": session.pk, "first_seq": entry.first_seq, "last_seq": entry.last_seq}

    def validate_state(self, state: str) -> str:
        if state not in (EntryStatus.LIVE, EntryStatus.HIDDEN):
            raise serializers.ValidationError("An entry can be set to live or to hidden.")
        current = self.instance.state
        is_decision = current == EntryStatus.PROPOSED or (
            current == EntryStatus.HIDDEN and state == EntryStatus.LIVE
        )
        if is_decision and not may_decide(self.context["member"], self.instance):
            raise serializers.ValidationError("An owner decides on it.")
        return state

    @transaction.atomic
    def update(self, instance: Entry, validated_data: dict[str, Any]) -> Entry:
        act = {
            "by": self.context["request"].user,
            "reason": validated_data.get("reason", ModerationReason.OTHER),
        }
        changes = {
            "summary": lambda summary: entry_operations.edit(instance, summary, **act),
            "state": lambda state: entry_operations.set_hidden(
                instance, state == EntryStatus.HIDDEN, **act
            ),
            "pinned": lambda pinned: entry_operations.pin(instance, pinned, **act),
        }
        for name, change in changes.items():
            if name in validated_data:
                instance = change(validated_data[name])
        return instance


class QueuedSerializer(serializers.Serializer):
    """Whether a summary was queued, or one is already being written."""

    queued = serializers.BooleanField()
    running = serializers.BooleanField()


class NotQueuedSerializer(serializers.Serializer):
    """The reason why no summary was queued; `detail` is the same, as in every error."""

    queued = serializers.BooleanField()
    reason = serializers.CharField()
    detail = serializers.CharField()
