"""/api/v1/projects/{slug}/activity/: the activity log."""

from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django_filters import rest_framework as filters
from rest_framework import generics, serializers

from chat.models import Session, Visibility
from memory.models import Activity, ActivityVerb
from projects.api.members import MembershipMixin
from projects.core.api.filters import MomentFilter
from projects.models import MemberRole


class ActivitySerializer(serializers.ModelSerializer):
    """One recorded action: ids, verbs and numbers. `by` is null for automatic actions. `session`
    and `message` are null if they belong to another user's private session.
    """

    by = serializers.CharField(source="by.username", read_only=True, default=None, allow_null=True)
    whom = serializers.CharField(
        source="whom.username",
        read_only=True,
        default=None,
        allow_null=True,
        help_text="The member, if a membership was changed.",
    )
    role_before = serializers.ChoiceField(MemberRole.choices, allow_blank=True)
    role_after = serializers.ChoiceField(MemberRole.choices, allow_blank=True)
    entry = serializers.UUIDField(source="entry_id", allow_null=True)
    fact = serializers.UUIDField(source="fact_id", allow_null=True)
    session = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    verb = serializers.ChoiceField(ActivityVerb.choices)
    related = serializers.ListField(
        child=serializers.UUIDField(), read_only=True, help_text="Ids of other affected objects."
    )
    receipt = serializers.DictField(
        read_only=True,
        help_text="For a forget request: what was removed, as numbers and ids. For an import: the "
        "chats, and the rejected items; `count` is the number of messages.",
    )

    class Meta:
        model = Activity
        fields = """
            id at verb by whom role_before role_after entry fact session message granularity
            period_key related count reason receipt calls input_tokens output_tokens cost
            duration_ms
        """.split()
        read_only_fields = fields

    def get_session(self, act: Any) -> UUID | None:
        return None if act.is_private else act.session_id

    def get_message(self, act: Any) -> UUID | None:
        return None if act.is_private else act.message_id


class ActivityFilter(filters.FilterSet):
    verb = filters.ChoiceFilter(choices=ActivityVerb.choices)
    entry = filters.UUIDFilter("entry_id")
    fact = filters.UUIDFilter("fact_id")
    session = filters.UUIDFilter(method="filter_session")
    by = filters.CharFilter("by__username", max_length=150)
    whom = filters.CharFilter("whom__username", max_length=150)
    since = MomentFilter("at", "gte")
    until = MomentFilter("at", "lt", help_text="Not included.")

    def filter_session(self, acts: QuerySet[Activity], name: str, pk) -> QuerySet[Activity]:
        """Return the actions on a session, or none if it is another user's private session."""
        return acts.filter(session_id=pk, is_private=False)  # type: ignore[misc]


class ActivityBaseView(MembershipMixin, generics.GenericAPIView):
    queryset = Activity.objects.none()
    serializer_class = ActivitySerializer

    def get_queryset(self) -> QuerySet[Activity]:
        private = Session.objects.filter(visibility=Visibility.PRIVATE)
        private = private.exclude(creator=self.request.user)
        named = private.filter(pk=OuterRef("session_id"))
        of_message = private.filter(messages=OuterRef("message_id"))
        acts = Activity.objects.filter(project=self.membership.project_id)
        acts = acts.annotate(is_private=Exists(named) | Exists(of_message))
        return acts.select_related("by", "whom")


class ActivityListView(ActivityBaseView, generics.ListAPIView):
    """The activity log of a project's memory, newest first: actor, time, reason and cost of each
    action. The log contains ids and verbs but no text, and cannot be changed.
    """

    filterset_class = ActivityFilter


class ActivityDetailView(ActivityBaseView, generics.RetrieveAPIView):
    """One recorded action, such as a forget request with its receipt."""
