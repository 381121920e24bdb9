"""/api/v1/projects/…/recall/: what was said, found again."""

from typing import Any

from django.contrib.auth import get_user_model
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.models import SourceType
from memory.recall import SAID, Scope, recall
from projects import access

# Results when neither a limit nor a budget is given.
LIMIT = 20


class AskedSerializer(serializers.Serializer):
    """What is asked for. With a token budget, excerpts are packed into it, in time order; without
    one, the best come first. Without `q`, the most recent are found.
    """

    q = serializers.CharField(required=False, default="", allow_blank=True, max_length=2_000)
    token_budget = serializers.IntegerField(required=False, min_value=1, max_value=100_000)
    limit = serializers.IntegerField(required=False, min_value=1, max_value=200)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False, help_text="Not included.")
    session = serializers.UUIDField(required=False)
    exclude_session = serializers.UUIDField(required=False)
    source = serializers.ChoiceField(
        SourceType.choices,
        required=False,
        help_text="Only this. Otherwise what was said, and no summaries.",
    )
    author = serializers.CharField(required=False, help_text="A username.")


class ResultSerializer(serializers.Serializer):
    """An excerpt; `tokens` with date and speaker, `signals` what each of them added to `score`."""

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    score = serializers.FloatField()
    signals = serializers.DictField(child=serializers.FloatField())
    source_type = serializers.CharField()
    source_id = serializers.CharField()
    session = serializers.UUIDField(allow_null=True)
    first_seq = serializers.IntegerField()
    last_seq = serializers.IntegerField()
    role = serializers.CharField()
    speaker = serializers.CharField()
    occurred_at = serializers.DateTimeField()


class ExcerptsSerializer(serializers.Serializer):
    results = ResultSerializer(many=True)


class Recall(APIView):
    """What was said in the project and you may read, by meaning and by word.

    Your own sessions are searched, everyone's shared notes, and what others said in shared
    sessions where the project shares raw turns.
    """

    @extend_schema(parameters=[AskedSerializer], responses=ExcerptsSerializer)
    def get(self, request, slug: str) -> Response:
        project = access.project_for_reading(request.user, slug, request.auth)
        asked = AskedSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        given: dict[str, Any] = asked.validated_data
        budget, limit = given.get("token_budget"), given.get("limit")
        if budget is None and limit is None:
            limit = LIMIT
        scope = Scope(
            project,
            request.user,
            since=given.get("since"),
            until=given.get("until"),
            session=given.get("session"),
            exclude_session=given.get("exclude_session"),
            source_types=[given["source"]] if "source" in given else SAID,
            author=_user(given["author"]) if "author" in given else None,
        )
        results = recall(scope, given["q"], budget, limit)
        return Response(ExcerptsSerializer({"results": results}).data)


def _user(name: str):
    """The user of that name. Nothing tells whether there is one: nobody's words are as many."""
    users = get_user_model()
    return users.objects.filter(username=name).first() or users()
