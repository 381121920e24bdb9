"""/api/v1/…/revisions/: the revisions of an entry; …/sources/: the memory in the prompt of a
reply.
"""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import get_object_or_404
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.permissions import message_for_reading, sessions_for
from memory.api.entries import LineSerializer
from memory.layers.line_sources import open_messages
from memory.moderation.revisions import entry_texts
from memory.permissions import entries_for
from memory.prompt.receipt_sources import readable_sections
from projects.permissions import membership


class EntryTextSerializer(serializers.Serializer):
    revision = serializers.IntegerField()
    summary = serializers.CharField()
    lines = LineSerializer(many=True)
    written_by = serializers.CharField()
    written_at = serializers.DateTimeField()


class EntryRevisionListView(APIView):
    """The revisions of an entry, newest first: the current text and up to 50 earlier ones.

    Revisions of a private session are shown to its creator only. Withheld text is not shown.
    """

    @extend_schema(responses=EntryTextSerializer(many=True))
    def get(self, request, slug: str, pk) -> Response:
        member = membership(request.user, slug, token=request.auth)
        entry = get_object_or_404(entries_for(member), pk=pk)
        sessions = sessions_for(request.user, request.auth)
        readable = entry.session_id is None or sessions.filter(pk=entry.session_id).exists()
        texts = entry_texts(entry) if readable else []
        found = [line for text in texts for line in text.lines]
        context = {"messages": open_messages(request.user, member.project, found)}
        return Response(EntryTextSerializer(texts, many=True, context=context).data)


class PromptLineSerializer(serializers.Serializer):
    """A line of an entry. `messages` are the ids of the source messages that you may read."""

    text = serializers.CharField(source="line.shown")
    day = serializers.DateField(source="line.day")
    messages = serializers.PrimaryKeyRelatedField(
        many=True, read_only=True, pk_field=serializers.UUIDField()
    )


class PromptSourceSerializer(serializers.Serializer):
    """One item of a prompt. `changed` is true if the text has changed since the reply. For an
    entry, `lines` are the lines that the prompt contained, and `line_count` is the number of all
    lines.
    """

    kind = serializers.CharField(help_text="The layer of an entry, or block, fact or chunk.")
    tokens = serializers.IntegerField()
    text = serializers.CharField()
    when = serializers.CharField()
    source = serializers.CharField()
    address = serializers.CharField(help_text="The page of the source.")
    changed = serializers.BooleanField()
    lines = PromptLineSerializer(many=True)
    line_count = serializers.IntegerField()


class PromptSectionSerializer(serializers.Serializer):
    """A section of the prompt. `gone`: the number of items deleted or not readable to you."""

    name = serializers.CharField()
    tokens = serializers.IntegerField()
    things = PromptSourceSerializer(many=True, source="sources")
    gone = serializers.IntegerField(source="unavailable")


class ReplySourcesView(APIView):
    """The memory that the prompt of a reply contained, by section. Items that you may not read now
    are only counted.
    """

    @extend_schema(responses=PromptSectionSerializer(many=True))
    def get(self, request, pk) -> Response:
        message = message_for_reading(request.user, pk, request.auth)
        if not message.receipt:
            raise NotFound("There are no sources: not a reply, or the reply has not begun.")
        member = membership(request.user, message.session.project.slug, token=request.auth)
        sections = readable_sections(message.receipt, member)
        return Response(PromptSectionSerializer(sections, many=True).data)


@login_not_required
@require_GET
def reply_sources_moved(request, pk) -> HttpResponse:
    """Redirect from the former URL of `ReplySourcesView`."""
    return redirect("api-reply-sources", pk, permanent=True)
