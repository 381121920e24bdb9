"""The bank and the entries of a project as JSON."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.models import Visibility
from memory.access import may_decide
from memory.layers import review
from memory.layers.bank import Bank
from memory.layers.rendering import Rendered
from memory.models import Entry, Reason, State, Waiting


class LeftOutSerializer(serializers.Serializer):
    id = serializers.UUIDField()
    reason = serializers.CharField()


class BankSerializer(serializers.Serializer):
    """The memory as it stands in prompts. `version` rises when the text changes; a view of the
    past has none.
    """

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    version = serializers.IntegerField(allow_null=True)
    left_out = LeftOutSerializer(many=True)


def bank_data(bank: Bank | Rendered, max_tokens: int) -> dict[str, Any]:
    """What BankSerializer tells of `bank`."""
    return {
        "text": bank.text,
        "tokens": bank.tokens,
        "max_tokens": max_tokens,
        "version": bank.version if isinstance(bank, Rendered) else None,
        "left_out": [{"id": id, "reason": reason} for id, reason in bank.left_out],
    }


class CoversSerializer(serializers.Serializer):
    session = serializers.UUIDField()
    first_seq = serializers.IntegerField()
    last_seq = serializers.IntegerField()


class LossSerializer(serializers.Serializer):
    """A name, date, number or identifier of the children that a digest does not carry. The last of
    a long list is of the kind `more`, and its text the number of those that are not listed.
    """

    kind = serializers.CharField()
    text = serializers.CharField()


class EntrySerializer(serializers.ModelSerializer):
    """One node. A text that is withheld until it is rewritten is empty."""

    label = serializers.CharField(read_only=True)
    children = serializers.PrimaryKeyRelatedField(many=True, read_only=True)
    covers = serializers.SerializerMethodField()
    state = serializers.ChoiceField(State.choices, help_text="Can be set to live and to hidden.")
    waits_because = serializers.ChoiceField(Waiting.choices, read_only=True, allow_blank=True)
    losses = LossSerializer(many=True, read_only=True)
    reason = serializers.ChoiceField(
        Reason.choices,
        write_only=True,
        required=False,
        help_text="Why it is changed, for the activity log.",
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
        extra_kwargs = {"summary": {"max_length": 5_000}}

    def to_representation(self, instance: Entry) -> dict[str, Any]:
        told = super().to_representation(instance)
        return told | {"summary": "", "losses": []} if instance.withheld else told

    @extend_schema_field(CoversSerializer(allow_null=True))
    def get_covers(self, entry: Entry) -> dict[str, Any] | None:
        """The stretch it was written from; null for digests and for others' private sessions."""
        session = entry.session
        reader = self.context["request"].user
        if session is None or not (
            session.visibility == Visibility.PROJECT or session.creator_id == reader.pk
        ):
            return None
        return {
            "session": session.pk,
            "first_seq": entry.first_seq,
            "last_seq": entry.last_seq,
        }

    def validate_state(self, state: str) -> str:
        if state not in (State.LIVE, State.HIDDEN):
            raise serializers.ValidationError("An entry can be set to live or to hidden.")
        there = self.instance.state
        taken_in = there == State.PROPOSED or (there == State.HIDDEN and state == State.LIVE)
        if taken_in and not may_decide(self.context["member"], self.instance):
            raise serializers.ValidationError("An owner decides on it.")
        return state

    @transaction.atomic
    def update(self, instance: Entry, validated_data: dict[str, Any]) -> Entry:
        act = {
            "by": self.context["request"].user,
            "reason": validated_data.get("reason", Reason.OTHER),
        }
        changes = {
            "summary": lambda summary: review.edit(instance, summary, **act),
            "state": lambda state: review.set_hidden(instance, state == State.HIDDEN, **act),
            "pinned": lambda pinned: review.pin(instance, pinned, **act),
        }
        for name, change in changes.items():
            if name in validated_data:
                try:
                    instance = change(validated_data[name])
                except review.Refused as refused:
                    raise serializers.ValidationError({name: [str(refused)]}) from refused
        return instance


class QueuedSerializer(serializers.Serializer):
    """Whether a summary was queued now, or another is being written already."""

    queued = serializers.BooleanField()
    running = serializers.BooleanField()


class NotQueuedSerializer(serializers.Serializer):
    """Why no summary was queued; `detail` says the same, as in every refusal."""

    queued = serializers.BooleanField()
    reason = serializers.CharField()
    detail = serializers.CharField()
