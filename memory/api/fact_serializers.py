"""Facts and their sources as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError

from memory import facts
from memory.facts import Refused, Stale, Statement, access
from memory.facts.changing import statement_of
from memory.models import Fact, Reason, Standing, Waiting
from memory.models.facts import LONGEST_OBJECT, LONGEST_PREDICATE, LONGEST_SUBJECT
from projects.api.versions import Changed

# Of one topic, told with each of its facts.
HISTORY_SHOWN = 50


class SourceSerializer(serializers.Serializer):
    """A message that tells the fact."""

    session = serializers.UUIDField(source="session_id")
    message = serializers.UUIDField(source="message_id")
    seq = serializers.IntegerField(source="message.seq")
    said_at = serializers.DateTimeField(source="message.created_at")


class FactSerializer(serializers.ModelSerializer):
    """`subject` `predicate` `object`, from `valid_from` until `valid_until`, which is null for what
    is so still: an end that somebody gave, or the beginning of `closed_by`, the next fact of the
    same subject and predicate. `sources` are the messages that the asker may read.
    """

    subject = serializers.CharField(max_length=LONGEST_SUBJECT)
    predicate = serializers.CharField(max_length=LONGEST_PREDICATE)
    object = serializers.CharField(max_length=LONGEST_OBJECT)
    user = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Whom alone it is about and shown to: your own username, or null.",
    )
    confidence = serializers.FloatField(min_value=0, max_value=1, required=False)
    valid_from = serializers.DateTimeField(required=False, help_text="Now, if it is not given.")
    valid_until = serializers.DateTimeField(required=False, allow_null=True)
    closed_by = serializers.SerializerMethodField()
    waits_because = serializers.ChoiceField(Waiting.choices, read_only=True, allow_blank=True)
    state = serializers.ChoiceField(
        Standing.choices, required=False, help_text="Owners set it to live and to hidden."
    )
    sources = serializers.SerializerMethodField()
    reason = serializers.ChoiceField(
        Reason.choices,
        write_only=True,
        required=False,
        help_text="Why it is changed, for the activity log.",
    )

    class Meta:
        model = Fact
        fields: tuple[str, ...] = (
            "id",
            "subject",
            "predicate",
            "object",
            "user",
            "confidence",
            "valid_from",
            "valid_until",
            "closed_by",
            "recorded_at",
            "retired_at",
            "state",
            "waits_because",
            "by_hand",
            "written_by",
            "version",
            "sources",
            "reason",
        )
        read_only_fields = (
            "id",
            "recorded_at",
            "retired_at",
            "by_hand",
            "written_by",
            "version",
        )

    def to_representation(self, instance: Fact) -> dict[str, Any]:
        told = super().to_representation(instance)
        ends = getattr(instance, "until", instance.valid_until)
        until = self.fields["valid_until"].to_representation(ends) if ends else None
        user = instance.user.get_username() if instance.user else None
        # An earlier version is told under the id of its fact.
        return told | {
            "id": str(instance.earlier_of_id or instance.pk),
            "valid_until": until,
            "user": user,
        }

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_closed_by(self, fact: Fact) -> str | None:
        closer = getattr(fact, "closer", None)
        ended = closer is not None and fact.until == fact.begun  # type: ignore[attr-defined]
        return str(closer) if ended else None

    @extend_schema_field(SourceSerializer(many=True))
    def get_sources(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        sources = self.context.get("sources", {}).get(fact.earlier_of_id or fact.pk, [])
        return SourceSerializer(sources, many=True).data

    def validate_user(self, name: str | None) -> int | None:
        if not name:
            return None
        user = get_user_model().objects.filter(username=name).first()
        if user is None or user != self.context["request"].user:
            raise serializers.ValidationError("A fact is about the project, or about you.")
        return user.pk

    def create(self, validated_data: dict[str, Any]) -> Fact:
        given = _statement(validated_data, {"valid_from": timezone.now()})
        with refusing():
            fact, self.is_new = facts.give(self.context["member"], given)
        return fact

    def update(self, instance: Fact, validated_data: dict[str, Any]) -> Fact:
        by, reason = self.context["request"].user, validated_data.pop("reason", Reason.OTHER)
        state = validated_data.pop("state", instance.state)
        if "user" in validated_data and validated_data.pop("user") != instance.user_id:
            raise ValidationError({"user": ["Whom a fact is about stays as it is."]})
        version = self.context["version"]
        with refusing():
            if validated_data:
                there = vars(statement_of(instance))
                given = _statement(validated_data, there)
                instance = facts.edit(instance, given, by, version, reason)
                # From here on it is at the version that this made.
                version = None
            if state != instance.state:
                instance = self._decide(instance, state, by, reason, version)
        return instance

    def _decide(self, fact: Fact, state: str, by: Any, reason: str, version: int | None) -> Fact:
        if state == Standing.PROPOSED:
            raise ValidationError({"state": ["A fact can be set to live or to hidden."]})
        if not access.may_decide(self.context["member"], fact):
            raise PermissionDenied("An owner decides on it.")
        if state == Standing.HIDDEN:
            return facts.hide(fact, by, reason, version)
        act = facts.approve if fact.state == Standing.PROPOSED else facts.show
        return act(fact, by, reason, version)


def _statement(given: Mapping[str, Any], there: Mapping[str, Any]) -> Statement:
    fields = {**there, **given}
    fields["user_id"] = fields.pop("user", fields.get("user_id"))
    names = Statement.__dataclass_fields__
    return Statement(**{name: value for name, value in fields.items() if name in names})


@contextmanager
def refusing() -> Iterator[None]:
    """Inside, what is refused is told as a ValidationError."""
    try:
        yield
    except Stale as stale:
        raise Changed from stale
    except Refused as refused:
        raise ValidationError({"detail": str(refused)}) from refused


class OneFactSerializer(FactSerializer):
    """A fact with all that was so of its subject and predicate, the newest first."""

    history = serializers.SerializerMethodField()

    class Meta(FactSerializer.Meta):
        fields = (*FactSerializer.Meta.fields, "history")

    @extend_schema_field(FactSerializer(many=True))
    def get_history(self, fact: Fact) -> Sequence[Mapping[str, Any]]:
        rows = facts.history(self.context["member"], fact).select_related("user")[:HISTORY_SHOWN]
        return facts_data(list(rows), self.context)


def facts_data(rows: Sequence[Fact], context: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What FactSerializer tells of `rows`, with the sources that the member may read."""
    sources = access.readable_sources(context["member"], rows)
    return FactSerializer(rows, many=True, context={**context, "sources": sources}).data
