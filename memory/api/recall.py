"""/api/v1/projects/…/recall/: search over messages, notes, summaries, facts and files."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.providers.booking import Payer
from memory.files import access
from memory.models import FilePassage, SourceType
from memory.recall import TRANSCRIPT_SOURCES, RecallResult, RecallScope, recall
from memory.recall.speakers import MAX_NAME_CHARS, speaker_filters
from projects import permissions
from projects.core.api.json import validated

# The number of results of a query without a limit and a token budget.
DEFAULT_LIMIT = 20


class RecallQuerySerializer(serializers.Serializer):
    """With `token_budget`, the results that fit are returned in time order. Without it, the best
    results come first. Without `q`, the most recent chunks are returned.
    """

    q = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2_000,
        help_text="Empty: the most recent.",
    )
    token_budget = serializers.IntegerField(required=False, min_value=1, max_value=100_000)
    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=200,
        help_text=f"Default: {DEFAULT_LIMIT}, or no limit with `token_budget`.",
    )
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False, help_text="Not included.")
    session = serializers.UUIDField(required=False)
    exclude_session = serializers.UUIDField(required=False)
    source = serializers.ChoiceField(
        SourceType.choices,
        required=False,
        help_text="Search only this source. Default: messages and notes.",
    )
    file = serializers.UUIDField(
        required=False, help_text="Only in this file; `source` is ignored."
    )
    valid_at = serializers.DateTimeField(
        required=False, help_text="Facts that are valid at that time. Default: now."
    )
    author = serializers.CharField(
        required=False, max_length=MAX_NAME_CHARS, help_text="A username or a speaker's name."
    )


class RecallResultSerializer(serializers.Serializer):
    """An excerpt. `tokens` includes its date and speaker. `signals` are the parts of `score`."""

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
    file = serializers.SerializerMethodField(
        help_text="For a passage of a file, the id of the file."
    )
    page = serializers.SerializerMethodField(help_text="The page of a passage, if it has one.")

    def _passage(self, result: RecallResult) -> FilePassage | None:
        passages: dict[UUID, FilePassage] = self.context.get("passages", {})
        return passages.get(result.id)

    def get_file(self, result: RecallResult) -> UUID | None:
        passage = self._passage(result)
        return passage.revision.document_id if passage else None

    def get_page(self, result: RecallResult) -> int | None:
        passage = self._passage(result)
        return passage.page if passage else None


class RecallResponseSerializer(serializers.Serializer):
    results = RecallResultSerializer(many=True)


class RecallView(APIView):
    """Search by meaning and by word in the messages and notes that you may read. With `source`,
    search in summaries, facts or files instead.

    The search covers your own sessions, your messages in shared sessions, and all shared notes. If
    the project shares raw turns, it also covers the messages of other members in shared sessions.
    """

    @extend_schema(parameters=[RecallQuerySerializer], responses=RecallResponseSerializer)
    def get(self, request, slug: str) -> Response:
        project = permissions.project_for_reading(request.user, slug, request.auth)
        params: dict[str, Any] = validated(RecallQuerySerializer, request.query_params)
        budget, limit = params.get("token_budget"), params.get("limit")
        if budget is None and limit is None:
            limit = DEFAULT_LIMIT
        sources: Sequence[str] = [params["source"]] if "source" in params else TRANSCRIPT_SOURCES
        revisions = None
        if "file" in params:
            sources = [SourceType.FILE]
            document = access.file_for_reading(request.user, project, params["file"])
            revisions = [version.pk for version in document.revisions.all()]
        scope = RecallScope(
            project,
            request.user,
            since=params.get("since"),
            until=params.get("until"),
            session=params.get("session"),
            exclude_session=params.get("exclude_session"),
            source_types=sources,
            revisions=revisions,
            valid_at=params.get("valid_at"),
            payer=Payer.of(request),
            **speaker_filters(params.get("author", "")),
        )
        results = recall(scope, params["q"], budget, limit)
        context = {"passages": access.passages_of(project, results)}
        return Response(RecallResponseSerializer({"results": results}, context=context).data)
