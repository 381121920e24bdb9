"""Helpers for recall tests: sessions with indexed messages."""

from datetime import UTC, datetime, timedelta

from chat.conversations.messages import draft, post_messages
from chat.models import Session, Visibility
from memory.recall import RecallScope, indexing, recall

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def talk(project, user, *texts: str, visibility=Visibility.PROJECT, at=AT, **fields) -> Session:
    """A session of `user` with these messages, a minute apart, indexed."""
    session = Session.objects.create(
        project=project, creator=user, title="A chat", visibility=visibility, **fields
    )
    say(session, user, *texts, at=at)
    return session


def say(session: Session, user, *texts: str, at=AT, role="user") -> None:
    post_messages(
        session,
        [
            draft(text, author=user, role=role, created_at=at + timedelta(minutes=number))
            for number, text in enumerate(texts)
        ],
    )
    indexing.catch_up()


def recalled_texts(project, viewer, query: str, **scope) -> list[str]:
    """The texts that `viewer` finds, the best first."""
    return [
        result.text for result in recall(RecallScope(project, viewer, **scope), query, limit=50)
    ]
