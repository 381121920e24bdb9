"""/api/v1/projects/{slug}/memory/act/: decisions about entries, one or many at once."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import entries_for, objection_of
from memory.api.forgetting import ForgettingSerializer
from memory.forgetting import Receipt
from memory.forms import LONGEST_SUMMARY
from memory.impact import preview
from memory.models import Reason
from memory.moderation import MOST_AT_ONCE, USUAL_REASONS, WORDED, Act, Outcome, Wish, carry_out
from projects.access import WRITERS, membership


class ActSerializer(serializers.Serializer):
    """What is to be done to which entries."""

    action = serializers.ChoiceField(Act.choices)
    entries = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_AT_ONCE
    )
    reason = serializers.ChoiceField(Reason.choices, required=False)
    text = serializers.CharField(
        required=False,
        trim_whitespace=False,
        max_length=LONGEST_SUMMARY,
        help_text="What `edit` puts in place, or the words that `redact` takes out.",
    )
    revision = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="With `edit`: the text that was read. Another one by now is refused.",
    )
    sources = serializers.BooleanField(
        default=False, help_text="With `forget`: the messages that it was made of go, too."
    )
    preview = serializers.BooleanField(
        default=False, help_text="Tell what would come of it; change nothing."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        act = Act(attrs["action"])
        if act in WORDED and "text" not in attrs:
            raise serializers.ValidationError({"text": ["This action takes a text."]})
        if act in WORDED and len(attrs["entries"]) > 1:
            raise serializers.ValidationError({"entries": ["This is done to one at a time."]})
        return attrs


class RefusalSerializer(serializers.Serializer):
    entry = serializers.UUIDField()
    reason = serializers.CharField()


class BankShownSerializer(serializers.Serializer):
    text = serializers.CharField()
    tokens = serializers.IntegerField()


class ImpactSerializer(serializers.Serializer):
    """How many texts would be written anew, and the bank before and after."""

    summaries = serializers.IntegerField()
    digests = serializers.IntegerField()
    before = BankShownSerializer()
    after = BankShownSerializer()


class OutcomeSerializer(serializers.Serializer):
    """Which were changed, which refused and why, and which are not there, or not for you.
    `impact` is told in a preview.
    """

    done = serializers.ListField(child=serializers.UUIDField())
    refused = RefusalSerializer(many=True)
    missing = serializers.ListField(child=serializers.UUIDField())
    receipts = ForgettingSerializer(many=True)
    impact = ImpactSerializer(allow_null=True)


class Acts(APIView):
    """Approves, rejects, edits, pins, hides, redacts, has written anew or forgets entries, each
    with a reason. Each is done by itself: what is refused does not hold up the others.
    """

    @extend_schema(request=ActSerializer, responses=OutcomeSerializer)
    def post(self, request, slug: str) -> Response:
        member = membership(request.user, slug, WRITERS, request.auth)
        asked = ActSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        found = entries_for(member).select_related("session", "project")
        entries = list(found.filter(pk__in=given["entries"]).order_by("last_source_at", "pk"))
        if not entries:
            raise NotFound
        act = Act(given["action"])
        wish = Wish(
            act=act,
            by=request.user,
            reason=given.get("reason") or USUAL_REASONS.get(act, Reason.OTHER),
            text=given.get("text", ""),
            revision=given.get("revision"),
            sources=given["sources"],
        )
        objection = objection_of(member)
        missing = sorted({*given["entries"]} - {entry.pk for entry in entries})
        if given["preview"]:
            impact = preview(member.project, wish, entries, objection)
            return _tell(impact.outcome, missing, impact)
        return _tell(carry_out(wish, entries, objection), missing)


def _tell(outcome: Outcome, missing: list, impact: object = None) -> Response:
    told = {
        "done": [entry.pk for entry in outcome.done],
        "refused": [{"entry": entry.pk, "reason": why} for entry, why in outcome.refused],
        "missing": missing,
        "receipts": [_receipt(one) for one in outcome.receipts],
        "impact": impact,
    }
    return Response(OutcomeSerializer(told).data)


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return receipt.as_answer()
