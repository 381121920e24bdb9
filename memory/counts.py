"""What memory adds to the numbers that are told of a session."""

from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from chat.models import Session


def unsummarised(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """`sessions` with `unsummarized_count`, of the messages that no summary covers yet."""
    return sessions.annotate(unsummarized_count=Coalesce(F("cursor__unsummarised_messages"), 0))
