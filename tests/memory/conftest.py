"""A little project that remembers: a chat, its summary, and a day that may speak for it."""

from datetime import UTC, datetime

import pytest

AT = datetime(2026, 3, 12, 10, tzinfo=UTC)


@pytest.fixture
def chat(project, editor):
    """A shared chat with two messages."""
    from chat.conversations.messages import draft, post_messages
    from chat.models import Role, Session

    chat_session = Session.objects.create(project=project, creator=editor, title="The cutover")
    post_messages(
        chat_session,
        [
            draft("Does the replica stay up after it?", author=editor, created_at=AT),
            draft("It stays for seven days.", role=Role.ASSISTANT, created_at=AT),
        ],
    )
    return chat_session


@pytest.fixture
def remember(project):
    """Makes entries: of a chat, or of a period when a granularity is given."""
    from memory.layers.bank import item_tokens
    from memory.models import Entry

    def make(summary: str, session=None, granularity: str = "conversation", **fields) -> Entry:
        usual = {
            "period_key": "2026-03-12",
            "zone": "UTC",
            "tokens": 0,
            "message_count": 2,
            "first_source_at": AT,
            "last_source_at": AT,
            "written_by": "scripted",
            "sources_hash": "of its sources",
        }
        if session is not None:
            usual |= {"first_seq": 1, "last_seq": 2}
        entry = Entry.objects.create(
            project=project,
            session=session,
            granularity=granularity,
            summary=summary,
            **usual | fields,
        )
        entry.tokens = item_tokens(entry.as_item())
        entry.save()
        return entry

    return make


@pytest.fixture
def entry(remember, chat):
    return remember("- The replica stays seven days", chat)


@pytest.fixture
def day(remember, entry):
    """A digest that speaks for `entry`."""
    digest = remember("- A day about the replica", granularity="day")
    type(entry).objects.filter(pk=entry.pk).update(parent=digest, state="absorbed")
    entry.refresh_from_db()
    return digest
