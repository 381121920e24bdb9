"""Memory listens to chat: what is said is counted in the transaction that says it."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import F
from django.dispatch import receiver

from chat.models import Message, Role, Session, Status
from chat.signals import message_added, message_changed, session_deleted
from memory.layers import review
from memory.models import Cursor

# A failed reply says nothing; a stopped or interrupted one says what it got to say.
CONTRIBUTING = (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED)


def contributes(message: Message) -> bool:
    """Whether a summary is written from this message, as far as its own row tells."""
    return bool(
        message.remembered
        and message.text
        and message.status in CONTRIBUTING
        and message.role in (Role.USER, Role.ASSISTANT)
    )


@receiver(message_added)
def count_added(session: Session, messages: list[Message], **kwargs: object) -> None:
    _count(session.pk, session.project_id, messages)


@receiver(message_changed)
def count_finished(message: Message, **kwargs: object) -> None:
    _count(message.session_id, message.project_id, [message])


@receiver(session_deleted)
def withhold_what_was_made_of_it(session: Session, **kwargs: object) -> None:
    """The session's entries go with it; the digests above them are rewritten without it."""
    for entry in session.entries.exclude(parent=None).select_related("parent"):
        review.withhold(entry.parent)


def _count(session_id: UUID, project_id: UUID, messages: Iterable[Message]) -> None:
    """Adds to the session's cursor. The session's row is locked, so the cursor is made once."""
    fresh = [message for message in messages if contributes(message)]
    if not fresh:
        return
    count, tokens = len(fresh), sum(message.tokens for message in fresh)
    counted = Cursor.objects.filter(pk=session_id).update(
        unsummarised_messages=F("unsummarised_messages") + count,
        unsummarised_tokens=F("unsummarised_tokens") + tokens,
    )
    if not counted:
        Cursor.objects.create(
            session_id=session_id,
            project_id=project_id,
            unsummarised_messages=count,
            unsummarised_tokens=tokens,
        )
