"""/api/v1/…/memory/: the memory bank and its entries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.models import Visibility
from memory.api.base import AS_OF, moment_parameter, reason_of_change
from memory.api.forgetting import ForgetReceiptSerializer, forget_data
from memory.forgetting.closure import find_deletions
from memory.forgetting.service import ForgetScope
from memory.layers.bank import Bank
from memory.layers.bank_cache import ProjectBank, rendered_bank
from memory.layers.history import bank_as_of, entry_as_of
from memory.layers.line_sources import open_messages
from memory.layers.lines import Line
from memory.models import Entry, EntryStatus, ModerationReason, ReviewReason
from memory.moderation import entry_operations
from memory.moderation.entry_operations import MAX_SUMMARY_CHARS
from memory.permissions import entries_for, may_decide, may_read_past
from projects.api.members import MembershipMixin
from projects.core.api.etags import ETagMixin, check_if_match, is_conditional
from projects.core.api.filters import FlagFilter, MomentFilter
from projects.models import Project
from projects.permissions import project_for_reading

CHILDREN = Prefetch("children", Entry.objects.only("parent"))


class LeftOutSerializer(serializers.Serializer):
    id = serializers.UUIDField()
    reason = serializers.CharField()


class CoversSerializer(serializers.Serializer):
    session = serializers.UUIDField()
    first_seq = serializers.IntegerField()
    last_seq = serializers.IntegerField()


class LossSerializer(serializers.Serializer):
    """A name, date, number or identifier in the sources of an entry that its text does not
    contain. If the list is too long, its last item has the kind `more` and the number of omitted
    losses as text.
    """

    kind = serializers.CharField()
    text = serializers.CharField()


class LineSerializer(serializers.Serializer):
    """A line of an entry. `speaker` is empty unless the line is a quotation. `messages` are the ids
    of the source messages that you may read. `sources` is the number of all source messages.
    """

    text = serializers.CharField()
    speaker = serializers.CharField()
    day = serializers.DateField()
    messages = serializers.SerializerMethodField()
    sources = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.UUIDField()))
    def get_messages(self, line: Line) -> list[UUID]:
        return [source for source in line.sources if source in self.context["messages"]]

    def get_sources(self, line: Line) -> int:
        return len(line.sources)


class ShownSerializer(serializers.Serializer):
    """An entry in the bank. `lines` is the number of lines in the bank, `of` the number of all
    lines of the entry. `shown_lines` are the lines in the bank, the most important first. The list
    is empty if the entry was changed after the bank was rendered.
    """

    id = serializers.UUIDField()
    lines = serializers.IntegerField()
    of = serializers.IntegerField()
    shown_lines = LineSerializer(many=True)


class BankSerializer(serializers.Serializer):
    """The memory bank as prompts contain it. `version` increases when the text changes. It is null
    for the bank at an earlier time.
    """

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    version = serializers.IntegerField(allow_null=True)
    shown = ShownSerializer(many=True)
    left_out = LeftOutSerializer(many=True)


def bank_data(bank: Bank | ProjectBank, project: Project, user: Any) -> dict[str, Any]:
    """Return the bank for BankSerializer, with the messages that `user` may read."""
    shown = _shown_lines(bank, project)
    messages = open_messages(user, project, chain.from_iterable(shown.values()))
    data = {
        "text": bank.text,
        "tokens": bank.tokens,
        "max_tokens": project.bank_max_tokens,
        "version": bank.version if isinstance(bank, ProjectBank) else None,
        "shown": [
            {
                "id": entry.id,
                "lines": len(entry.places),
                "of": entry.of,
                "shown_lines": shown.get(entry.id, ()),
            }
            for entry in bank.included
        ],
        "left_out": [{"id": id, "reason": reason} for id, reason in bank.left_out],
    }
    return BankSerializer(data, context={"messages": messages}).data


def _shown_lines(bank: Bank | ProjectBank, project: Project) -> Mapping[UUID, Sequence[Line]]:
    """Return, by entry, the lines in the bank, without entries that changed since."""
    if isinstance(bank, Bank):
        return {item.id: item.lines for item in bank.included}
    entries = project.entries.in_bulk([item.id for item in bank.included])
    shown = {}
    for item in bank.included:
        entry = entries.get(item.id)
        if entry is not None and entry.revision == item.revision:
            lines = enumerate(entry.read_lines())
            shown[item.id] = [line for place, line in lines if place in item.places]
    return shown


class EntrySerializerList(serializers.ListSerializer):
    def to_representation(self, data: Any) -> Any:
        entries = list(data)
        self.child.read_messages(entries)
        return super().to_representation(entries)


class EntrySerializer(serializers.ModelSerializer):
    """One entry. `summary` and `lines` are empty while the entry is withheld."""

    label = serializers.CharField(read_only=True)
    children = serializers.PrimaryKeyRelatedField(many=True, read_only=True)
    covers = serializers.SerializerMethodField()
    file = serializers.SerializerMethodField()
    state = serializers.ChoiceField(
        EntryStatus.choices, help_text="Only `live` and `hidden` can be set."
    )
    waits_because = serializers.ChoiceField(ReviewReason.choices, read_only=True, allow_blank=True)
    losses = LossSerializer(many=True, read_only=True)
    lines = serializers.SerializerMethodField()
    reason = reason_of_change()

    class Meta:
        model = Entry
        list_serializer_class = EntrySerializerList
        fields = """
            id granularity period_key label summary lines tokens message_count state pinned withheld
            waits_because losses particulars revision parent children covers file first_source_at
            last_source_at written_by written_at reason
        """.split()
        _declared = {"state", "reason", "waits_because", "losses", "lines"}
        read_only_fields = tuple(sorted({*fields} - {"summary", "pinned"} - _declared))
        extra_kwargs = {"summary": {"max_length": MAX_SUMMARY_CHARS}}

    def to_representation(self, instance: Entry) -> dict[str, Any]:
        data = super().to_representation(instance)
        return data | {"summary": "", "losses": []} if instance.withheld else data

    def read_messages(self, entries: Sequence[Entry]) -> None:
        """Load, with one query, the source messages of `entries` that the user may read."""
        found = [line for entry in entries if not entry.withheld for line in entry.read_lines()]
        project = self.context["member"].project
        self.context["messages"] = open_messages(self.context["request"].user, project, found)

    @extend_schema_field(LineSerializer(many=True))
    def get_lines(self, entry: Entry) -> Any:
        if entry.withheld:
            return []
        if "messages" not in self.context:
            self.read_messages([entry])
        return LineSerializer(entry.read_lines(), many=True, context=self.context).data

    @extend_schema_field(CoversSerializer(allow_null=True))
    def get_covers(self, entry: Entry) -> dict[str, Any] | None:
        """Return the range of messages; null for digests, files and other users' private
        sessions.
        """
        if entry.session is None or entry.file or not self._may_read_session(entry):
            return None
        session = entry.session_id
        return {"session": session, "first_seq": entry.first_seq, "last_seq": entry.last_seq}

    def get_file(self, entry: Entry) -> UUID | None:
        """Return the id of the file that the entry summarises; null for other entries, and for
        files of other users' private sessions.
        """
        return entry.file.document_id if entry.file and self._may_read_session(entry) else None

    def _may_read_session(self, entry: Entry) -> bool:
        session, reader = entry.session, self.context["request"].user
        return (
            session is None
            or session.visibility == Visibility.PROJECT
            or session.creator_id == reader.pk
        )

    def validate_state(self, state: str) -> str:
        if state not in (EntryStatus.LIVE, EntryStatus.HIDDEN):
            raise serializers.ValidationError("An entry can be set to live or to hidden.")
        current = self.instance.state
        is_decision = current == EntryStatus.PROPOSED or (
            current == EntryStatus.HIDDEN and state == EntryStatus.LIVE
        )
        if is_decision and not may_decide(self.context["member"], self.instance):
            raise serializers.ValidationError("Only an owner can decide on this entry.")
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


class BankView(ETagMixin, APIView):
    """The project's memory bank as every prompt contains it, and the entries that did not fit."""

    @extend_schema(parameters=[AS_OF], responses=BankSerializer)
    def get(self, request, slug: str) -> Response:
        project = project_for_reading(request.user, slug, request.auth)
        moment = moment_parameter(request, "as_of", project)
        bank = bank_as_of(project, moment) if moment else rendered_bank(project)
        return Response(bank_data(bank, project, request.user))


class EntryFilter(filters.FilterSet):
    """`because` is the reason why an entry waits for review. `since` and `until` refer to the time
    of the last source message. `q` searches for words in the text.
    """

    pinned = FlagFilter()
    because = filters.ChoiceFilter("waits_because", choices=ReviewReason.choices)
    since = MomentFilter("last_source_at", "gte")
    until = MomentFilter("last_source_at", "lt", help_text="Not included.")
    q = filters.CharFilter(
        method=lambda entries, name, words: entries.matching(words), max_length=200
    )
    session = filters.UUIDFilter(method="filter_session")

    class Meta:
        model = Entry
        fields = ("granularity", "state")

    def filter_session(self, entries: QuerySet[Entry], name: str, session) -> QuerySet[Entry]:
        """Return the entries of a session. For another user's private session, return none."""
        shared = Q(session__visibility=Visibility.PROJECT)
        return entries.filter(shared | Q(session__creator=self.request.user), session=session)


class EntryBaseView(MembershipMixin, generics.GenericAPIView):
    queryset = Entry.objects.none()
    serializer_class = EntrySerializer

    def get_queryset(self) -> QuerySet[Entry]:
        return entries_for(self.membership).prefetch_related(CHILDREN)

    def get_serializer_context(self) -> dict[str, object]:
        return super().get_serializer_context() | {"member": self.membership}


class EntryListView(EntryBaseView, generics.ListAPIView):
    """The entries of all layers."""

    filterset_class = EntryFilter
    orderings = {
        "-id": UUID,
        "id": UUID,
        "-last_source_at": datetime.fromisoformat,
        "last_source_at": datetime.fromisoformat,
    }


class EntryDetailView(ETagMixin, EntryBaseView, generics.RetrieveUpdateDestroyAPIView):
    """One entry. Owners and editors may change its text, pin it and hide it. Owners, and editors in
    their private chats, may forget it together with the entries that it was made from, with a token
    of the scope `admin`. The messages stay, but are no longer remembered.
    """

    http_method_names = ("get", "patch", "delete", "head", "options")
    deleting_scope = "admin"

    @extend_schema(parameters=[AS_OF])
    def get(self, request, *args, **kwargs) -> Response:
        moment = moment_parameter(request, "as_of", self.membership.project)
        if moment is None:
            return self.retrieve(request, *args, **kwargs)
        entry = self.get_object()
        past = entry_as_of(entry, moment)
        if past is None or past.summary is None:
            raise Http404
        if not may_read_past(self.membership, entry, past.state):
            raise Http404
        state = {name: getattr(past.state, name) for name in ("state", "pinned", "revision")}
        state |= {"summary": past.summary, "parent": past.state.parent_id}
        entry.set_lines(past.lines, past.summary)
        return Response(self.get_serializer(entry).data | state)

    @extend_schema(responses={200: ForgetReceiptSerializer})
    def delete(self, request, *args, **kwargs) -> Response:
        scope = ForgetScope(entry=self.get_object().pk)
        with self._precondition(lambda: find_deletions(self.membership.project, scope)):
            return Response(forget_data(self.membership, scope, request.user))

    def patch(self, request, *args, **kwargs) -> Response:
        rows = self.membership.project.entries.select_for_update().filter(pk=kwargs["pk"])
        with self._precondition(lambda: list(rows)):
            return self.partial_update(request, *args, **kwargs)

    @contextmanager
    def _precondition(self, lock: Callable[[], object]) -> Iterator[None]:
        """Check If-Match after `lock`, which locks the entry until the end of the block. It must
        keep the order of locks (docs/architecture.md).
        """
        with transaction.atomic():
            # Moderation and forgetting lock the project before its entries, too.
            Project.objects.select_for_update(no_key=True).get(pk=self.membership.project_id)
            if is_conditional(self.request):
                lock()
                check_if_match(self.request, self.get_serializer(self.get_object()).data)
            yield
