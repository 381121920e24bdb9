"""Days with conversation entries in them, ready to settle."""

from datetime import UTC, datetime, timedelta

from chat.conversations.messages import draft, post_messages
from chat.models import Session
from memory.layers.bank import item_tokens
from memory.layers.periods import day_key
from memory.models import Cursor, Entry

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
# All that is told of the days from START on is old enough to roll into days, nothing into weeks.
NOW = START + timedelta(days=4)


def remember(project, owner, summary: str, day: int = 0, **fields) -> Entry:
    """A conversation entry of `day` days after START, with this summary."""
    at = START + timedelta(days=day, minutes=Session.objects.count())
    session = Session.objects.create(
        project=project, creator=owner, title="Talk", created_at=at, last_activity_at=at
    )
    post_messages(session, [draft("What was said.", created_at=at)])
    Cursor.objects.filter(pk=session.pk).update(summarised_through=1, unsummarised_messages=0)
    entry = Entry(
        project=project,
        session=session,
        granularity="conversation",
        period_key=day_key(at, project.zone),
        zone=project.timezone,
        first_seq=1,
        last_seq=1,
        summary=summary,
        message_count=1,
        first_source_at=at,
        last_source_at=at,
        written_by="someone",
        **fields,
    )
    entry.tokens = item_tokens(entry.as_item())
    entry.save()
    return entry
