"""What lost its entry, and is to be remembered after all."""

from collections.abc import Collection

from django.utils import timezone

from chat.models import Session
from memory.layers.conversations import entry_of, read
from memory.models import Cursor, State


def cover_again(session: Session, seqs: Collection[int]) -> None:
    """Has messages at these places of `session`, which is locked, covered if no entry does.

    An entry goes when nothing in its stretch contributes; a path that was left may be chosen
    again. An empty entry then stands in the gap and waits to be written.
    """
    through = Cursor.objects.get(project=session.project_id, pk=session.pk).summarised_through
    entries = session.entries.filter(project=session.project_id)
    ranges = entries.order_by("first_seq").values_list("first_seq", "last_seq")
    begin = 1
    for first, last in [*ranges, (through + 1, through)]:
        # What is covered has a beginning and an end.
        assert first is not None and last is not None
        if any(begin <= seq < first for seq in seqs):
            _open(session, begin, first - 1)
        begin = last + 1


def _open(session: Session, first: int, last: int) -> None:
    stretch = read(session, first - 1, last)
    if stretch.contributing:
        entry = entry_of(session, stretch, "", "", timezone.now())
        entry.state, entry.withheld, entry.sources_hash = State.STALE, True, ""
        entry.save(force_insert=True)
