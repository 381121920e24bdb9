"""What of each session is to be cut into turns: its path, from where it may have changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import takewhile
from operator import or_
from uuid import UUID

from django.conf import settings
from django.db.models import Max, Q

from chat.models import Message, Session
from chat.paths import path_to
from memory.layers.coverage import contributes
from memory.models import Chunk, IndexCursor
from memory.models.chunks import OF_SESSIONS
from memory.recall import chunking
from memory.recall.chunking import Rules, Turn

# The columns of a message that are read.
READ = (
    *("session", "seq", "parent", "role", "author", "author_name", "text", "status"),
    *("remembered", "deleted_at", "copied_from", "created_at"),
)
# Places of one session that are read at once; a longer one is indexed by stretches.
STRETCH = 2_000


@dataclass(frozen=True)
class Line:
    """A message as the chunker reads it, and whose it is."""

    seq: int
    role: str
    author: str
    text: str
    at: datetime
    author_id: int | None


@dataclass(frozen=True)
class Extent:
    """The turns of a session from the place `start` to `through`, and the people in them.

    It `goes_on` when there is more to read behind it.
    """

    cursor: IndexCursor
    start: int
    through: int
    turns: Sequence[Turn]
    author_ids: dict[int, int | None]
    goes_on: bool


def rules(session: Session) -> Rules:
    """What somebody took the trouble to note stands by itself, however short it is."""
    if session.is_notes:
        return Rules(min_chars=1, merge=False)
    return Rules(task_verbs=frozenset(settings.TASK_VERBS), merge=settings.MERGE_TURNS)


def extents(cursors: Sequence[IndexCursor]) -> list[Extent]:
    """What is to be indexed of each session, as it is now."""
    starts = _starts(cursors)
    messages = _messages(cursors, starts)
    return [_extent(cursor, starts[cursor.pk], messages.get(cursor.pk, [])) for cursor in cursors]


def _starts(cursors: Sequence[IndexCursor]) -> dict[UUID, int]:
    """From where each session is cut anew: the beginning of the last chunk that begins before
    what changed, since that one may grow or shrink.
    """
    before = reduce(or_, (Q(source=one.pk, first_seq__lt=one.dirty_from) for one in cursors))
    chunks = Chunk.objects.filter(
        before, project__in={one.project_id for one in cursors}, source_type__in=OF_SESSIONS
    )
    last = dict(
        chunks.values("source").annotate(Max("first_seq")).values_list("source", "first_seq__max")
    )
    return {one.pk: _start(one.dirty_from, last.get(one.pk, 1)) for one in cursors}


def _start(dirty_from: int, last_chunk: int) -> int:
    """A chunk so far back is not worth reading all that was left out since."""
    return last_chunk if dirty_from - last_chunk < STRETCH // 2 else dirty_from


def _messages(cursors: Sequence[IndexCursor], starts: dict[UUID, int]) -> dict[UUID, list[Message]]:
    """The next messages of each session, in order."""
    wanted = reduce(
        or_,
        (
            Q(session=one.pk, seq__gte=starts[one.pk], seq__lt=starts[one.pk] + STRETCH)
            for one in cursors
        ),
    )
    rows = Message.objects.filter(wanted, project__in={one.project_id for one in cursors})
    found: dict[UUID, list[Message]] = {}
    for message in rows.prefetch_related("author").only(*READ).order_by("session", "seq"):
        found.setdefault(message.session_id, []).append(message)
    return found


def _extent(cursor: IndexCursor, start: int, messages: Sequence[Message]) -> Extent:
    session = cursor.session
    finished = list(takewhile(lambda message: message.is_final, messages))
    through = finished[-1].seq if finished else start - 1
    goes_on = len(finished) == len(messages) and session.last_seq > through
    on_path = _path(session, start, messages)
    lines = [_line(one) for one in finished if one.pk in on_path and _counts(one)]
    turns = list(chunking.turns(lines, rules(session)))
    if goes_on and turns:
        # The last turn may grow by what comes behind: the next stretch begins with it.
        through = _start(through + 1, turns[-1].first_seq + 1) - 1
    return Extent(cursor, start, through, turns, {one.seq: one.author_id for one in lines}, goes_on)


def _path(session: Session, start: int, messages: Sequence[Message]) -> set[UUID]:
    """Which of `messages`, those from `start` on, lie on the session's path."""
    tree: Iterable[Message] = messages
    if messages and session.last_seq > messages[-1].seq:
        behind = session.messages.filter(project=session.project_id, seq__gte=start)
        tree = behind.only("session", "parent", "seq")
    return {message.pk for message in path_to(tree, session.head_id)}


def _counts(message: Message) -> bool:
    """Whether it is read at all; one in a role that is not indexed ends a turn."""
    return contributes(message) or (message.role not in chunking.ROLES and not message.deleted_at)


def _line(message: Message) -> Line:
    return Line(
        seq=message.seq,
        role=message.role,
        author=message.speaker,
        text=message.text,
        at=message.created_at,
        author_id=message.author_id,
    )
