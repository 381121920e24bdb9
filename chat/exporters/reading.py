"""A session's messages, read page by page: the texts of one page are in memory at a time."""

from collections.abc import Iterator

from chat.models import Message, Session
from chat.models.messages import MessageQuerySet
from chat.paths import path_to

AT_ONCE = 200  # messages


def everything(session: Session, *related: str) -> Iterator[Message]:
    """Every message there is now, those off the path included, in the order they were written.

    What is `related` is read with them, as `prefetch_related` names it.
    """
    seq = 0
    rows = _full(_rows(session).filter(seq__lte=session.last_seq)).prefetch_related(*related)
    while page := list(rows.after(seq)[:AT_ONCE]):
        yield from page
        seq = page[-1].seq


def path(session: Session) -> Iterator[Message]:
    """The messages on the path that counts, from the first one on."""
    nodes = path_to(_rows(session).only("parent_id"), session.head_id)
    for start in range(0, len(nodes), AT_ONCE):
        page = [node.pk for node in nodes[start : start + AT_ONCE]]
        found = _full(Message.objects.all()).in_bulk(page)
        yield from (found[pk] for pk in page if pk in found)


def _rows(session: Session) -> MessageQuerySet:
    # The project too, since the index begins with it; and not by way of `session.messages`, which
    # would ask for each message's session again where not all columns are read.
    return Message.objects.filter(project=session.project_id, session=session.pk)


def _full(rows: MessageQuerySet) -> MessageQuerySet:
    return rows.select_related("author").prefetch_related("attachments")
