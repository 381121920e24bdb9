"""/api/v1/…/revisions/ of an entry, and …/told/ of a reply: texts behind what is remembered."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import get_object_or_404
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.access import message_for_reading, sessions_for
from memory import told
from memory.access import entries_for
from memory.comparing import texts_of
from projects.access import membership


class TextSerializer(serializers.Serializer):
    revision = serializers.IntegerField()
    summary = serializers.CharField()
    written_by = serializers.CharField()
    written_at = serializers.DateTimeField()


class EntryRevisions(APIView):
    """The texts that an entry had, that of now first: up to 50 earlier ones. Those of a private
    session are told to who began it; a text that is withheld to nobody.
    """

    @extend_schema(responses=TextSerializer(many=True))
    def get(self, request, slug: str, pk) -> Response:
        member = membership(request.user, slug, token=request.auth)
        entry = get_object_or_404(entries_for(member), pk=pk)
        sessions = sessions_for(request.user, request.auth)
        readable = entry.session_id is None or sessions.filter(pk=entry.session_id).exists()
        return Response(TextSerializer(texts_of(entry) if readable else [], many=True).data)


class ThingSerializer(serializers.Serializer):
    """One thing that was told; `changed` where its text was another one then."""

    kind = serializers.CharField(help_text="Its layer, or block, fact, or chunk.")
    tokens = serializers.IntegerField()
    text = serializers.CharField()
    when = serializers.CharField()
    source = serializers.CharField()
    address = serializers.CharField(help_text="The page of where it comes from.")
    changed = serializers.BooleanField()


class PartSerializer(serializers.Serializer):
    """A section of the prompt. `gone` are the things that you may not read, or nobody any more."""

    name = serializers.CharField()
    tokens = serializers.IntegerField()
    things = ThingSerializer(many=True)
    gone = serializers.IntegerField()


class Told(APIView):
    """What a reply was told of memory, as far as you may read it now; a list of the sections."""

    @extend_schema(responses=PartSerializer(many=True))
    def get(self, request, pk) -> Response:
        message = message_for_reading(request.user, pk, request.auth)
        if not message.receipt:
            raise NotFound("It was told nothing: it is no reply, or has not begun.")
        member = membership(request.user, message.session.project.slug, token=request.auth)
        parts = told.parts(message.receipt, member)
        return Response(PartSerializer(parts, many=True).data)
