"""Reads a session's messages in pages, so that only one page is in memory."""

from collections.abc import Iterator

from chat.conversations.branches import path_to
from chat.models import Message, Session
from chat.models.messages import MessageQuerySet

PAGE_SIZE = 200


def iter_messages(session: Session, *related: str) -> Iterator[Message]:
    """Yield every message, on all branches, in the order of creation.

    `related` is passed to `prefetch_related`.
    """
    seq = 0
    rows = _with_related(_messages_of(session).filter(seq__lte=session.last_seq))
    rows = rows.prefetch_related(*related)
    while page := list(rows.after(seq)[:PAGE_SIZE]):
        yield from page
        seq = page[-1].seq


def iter_active_path(session: Session) -> Iterator[Message]:
    """Yield the messages of the active path, oldest first."""
    path = path_to(_messages_of(session).only("parent_id"), session.head_id)
    for start in range(0, len(path), PAGE_SIZE):
        ids = [message.pk for message in path[start : start + PAGE_SIZE]]
        messages = _with_related(Message.objects.all()).in_bulk(ids)
        yield from (messages[pk] for pk in ids if pk in messages)


def _messages_of(session: Session) -> MessageQuerySet:
    # By project too, because it is the first column of the index. With `only()`,
    # `session.messages` would run one more query for each message.
    return Message.objects.filter(project=session.project_id, session=session.pk)


def _with_related(rows: MessageQuerySet) -> MessageQuerySet:
    return rows.select_related("author").prefetch_related("attachments")
