"""/api/v1/projects/{slug}/memory/act/: actions on one or several entries."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.forgetting import ForgetReceiptSerializer
from memory.models import ModerationReason
from memory.moderation.actions import (
    DEFAULT_REASONS,
    FINAL_ACTIONS,
    MAX_ENTRIES_AT_ONCE,
    TEXT_ACTIONS,
    ModerationAction,
    ModerationRequest,
    apply_action,
    objection_of,
)
from memory.moderation.entry_operations import MAX_SUMMARY_CHARS
from memory.moderation.preview import preview
from memory.permissions import entries_for
from projects.authentication import require_scope
from projects.core.api.json import StrictSerializer, validated
from projects.permissions import WRITERS, membership, require_active


class EntryActionSerializer(StrictSerializer):
    """An action and the entries to which it applies."""

    action = serializers.ChoiceField(ModerationAction.choices)
    entries = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MAX_ENTRIES_AT_ONCE
    )
    reason = serializers.ChoiceField(ModerationReason.choices, required=False)
    text = serializers.CharField(
        required=False,
        trim_whitespace=False,
        max_length=MAX_SUMMARY_CHARS,
        help_text="The new text of `edit`, or the words that `redact` removes.",
    )
    revision = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="For `edit`: the revision that you read. Refused if there is a newer one.",
    )
    sources = serializers.BooleanField(
        default=False, help_text="For `forget`: also forget the source messages of the entry."
    )
    preview = serializers.BooleanField(
        default=False, help_text="Report the effects, and change nothing."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        act = ModerationAction(attrs["action"])
        if act in TEXT_ACTIONS and "text" not in attrs:
            raise serializers.ValidationError({"text": ["This action requires a text."]})
        if act in TEXT_ACTIONS and len(attrs["entries"]) > 1:
            raise serializers.ValidationError({"entries": ["This action accepts only one entry."]})
        attrs["action"] = act
        attrs.setdefault("reason", DEFAULT_REASONS.get(act, ModerationReason.OTHER))
        return attrs


class RefusalSerializer(serializers.Serializer):
    entry = serializers.UUIDField()
    reason = serializers.CharField()


class BankTextSerializer(serializers.Serializer):
    text = serializers.CharField()
    tokens = serializers.IntegerField()


class ImpactSerializer(serializers.Serializer):
    """The number of texts that would be rewritten, and the bank before and after the action."""

    summaries = serializers.IntegerField()
    digests = serializers.IntegerField()
    before = BankTextSerializer()
    after = BankTextSerializer()


class OutcomeSerializer(serializers.Serializer):
    """`done`: the entries that were changed. `refused`: the entries that could not be changed, with
    the reason. `missing`: the entries that do not exist or that you may not see. `impact` is null
    unless the request is a preview.
    """

    done = serializers.ListField(child=serializers.UUIDField())
    refused = RefusalSerializer(many=True)
    missing = serializers.ListField(child=serializers.UUIDField())
    receipts = ForgetReceiptSerializer(many=True)
    impact = ImpactSerializer(allow_null=True)


class EntryActionView(APIView):
    """Approve, reject, edit, pin, hide, redact, rewrite or forget entries, with a reason.

    Each entry is changed separately: a refusal does not stop the others. To redact or forget, a
    token needs the scope `admin`.
    """

    @extend_schema(request=EntryActionSerializer, responses=OutcomeSerializer)
    def post(self, request, slug: str) -> Response:
        member = membership(request.user, slug, WRITERS, request.auth)
        require_active(member.project)
        data = validated(EntryActionSerializer, request.data)
        if data["action"] in FINAL_ACTIONS:
            require_scope(request, "admin")
        ids, is_preview = data.pop("entries"), data.pop("preview")
        rows = entries_for(member).select_related("session", "project")
        entries = list(rows.filter(pk__in=ids).order_by("last_source_at", "pk"))
        if not entries:
            raise NotFound
        action = ModerationRequest(by=request.user, **data)
        objection, impact = objection_of(member), None
        if is_preview:
            impact = preview(member.project, action, entries, objection)
        outcome = impact.outcome if impact else apply_action(action, entries, objection)
        result = {
            "done": [entry.pk for entry in outcome.done],
            "refused": [{"entry": entry.pk, "reason": why} for entry, why in outcome.refused],
            "missing": sorted({*ids} - {entry.pk for entry in entries}),
            "receipts": [receipt.as_response() for receipt in outcome.receipts],
            "impact": impact,
        }
        return Response(OutcomeSerializer(result).data)
