"""Coverage: which messages contribute to summaries, and which ranges of messages entries cover.

The conversation entries of a session cover ranges of `seq` that do not overlap. Between two
ranges, there is no message to summarise.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from operator import attrgetter
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from chat.conversations.branches import MessageNode, path_to
from chat.models import Message, Role, Session, Status
from memory.layers.bank import item_tokens
from memory.layers.lines import Line
from memory.layers.periods import Granularity, day_key
from memory.models import Cursor, Entry, EntryState, EntryStatus

# A stopped or interrupted reply has part of its text. A failed reply has no text.
SUMMARISED_STATUSES = (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED)
SUMMARISED_ROLES = (Role.USER, Role.ASSISTANT)
# `contributes` as a query condition. A copy in a fork does not count: its original is remembered.
CONTRIBUTING = Q(
    remembered=True,
    deleted_at=None,
    copied_from=None,
    status__in=SUMMARISED_STATUSES,
    role__in=SUMMARISED_ROLES,
) & ~Q(text="")
# For a subquery of messages: filters by the range of the outer entry, chunk or import.
IN_RANGE = Q(session=OuterRef("session"), seq__range=(OuterRef("first_seq"), OuterRef("last_seq")))
# For a subquery of entries or imports: filters by ranges that contain the outer message.
CONTAINS_MESSAGE = Q(
    session=OuterRef("session"), first_seq__lte=OuterRef("seq"), last_seq__gte=OuterRef("seq")
)
# The maximum number of tokens that one entry covers. A longer range might exceed the time limit of
# a task, which would then be killed and start from the beginning every time.
MAX_RANGE_TOKENS = 100_000
# The number of messages that are read at once.
PAGE_MESSAGES = 500


def contributes(message: Message) -> bool:
    """Return whether this message contributes to a summary. Only its own row is considered."""
    return bool(
        message.remembered
        and message.text
        and message.status in SUMMARISED_STATUSES
        and message.role in SUMMARISED_ROLES
        and message.deleted_at is None
        and message.copied_from_id is None
    )


def recount(session: Session, beyond: int, through: int | None = None) -> None:
    """Set the counters of the session's cursor to the contributing messages after seq `beyond`.

    With `through`, also move the cursor to that seq. The session's row must be locked.
    """
    rows = session.messages.filter(CONTRIBUTING, project=session.project_id, seq__gt=beyond)
    left = rows.aggregate(count=Count("pk"), tokens=Sum("tokens", default=0))
    moved = {} if through is None else {"summarised_through": through}
    Cursor.objects.filter(project=session.project_id, pk=session.pk).update(
        unsummarised_messages=left["count"], unsummarised_tokens=left["tokens"], **moved
    )


@dataclass(frozen=True)
class MessageRange:
    """The messages from `first_seq` to `last_seq` at the time of the query.

    `fingerprint` changes when one of the messages or the active path through them changes.
    """

    first_seq: int
    last_seq: int
    contributing: list[Message]
    fingerprint: str


def read_range(session: Session, after: int, last: int | None = None) -> MessageRange:
    """Return the messages after the seq `after`, up to the first unfinished one.

    The range ends at seq `last`, or by default before its contributing messages would have more
    than `MAX_RANGE_TOKENS` tokens. It has at least one of them if there is one.
    """
    rows = session.messages.filter(project=session.project_id)
    # The path depends on all later messages, of which a long conversation has thousands.
    on_path = {node.pk for node in active_path(session, after)}
    if last is not None:
        rows = rows.filter(seq__lte=last)
    messages = takewhile(lambda message: message.is_final, _in_pages(rows, after))
    finished = list(messages if last is not None else _first_range(messages, on_path))
    return MessageRange(
        first_seq=after + 1,
        last_seq=finished[-1].seq if finished else after,
        contributing=[m for m in finished if m.pk in on_path and contributes(m)],
        fingerprint=fingerprint(finished, on_path),
    )


def fingerprint(messages: Iterable[Message], on_path: Container[UUID]) -> str:
    """Return the fingerprint of the messages of a range. `on_path` are those of the active path."""
    digest = hashlib.sha256()
    for message in messages:
        state = f"{message.pk} {message.version} {message.status} {message.pk in on_path};"
        digest.update(state.encode())
    return digest.hexdigest()


def fingerprints(session: Session, ranges: Sequence[tuple[int, int]]) -> list[str]:
    """Return the fingerprints of finished messages from the first to the last seq of each range."""
    rows = session.messages.filter(project=session.project_id)
    nodes = list(rows.only("session", "parent", "seq", "version", "status").order_by("seq"))
    on_path = {node.pk for node in path_to(nodes, session.head_id)}
    seqs = [node.seq for node in nodes]
    return [
        fingerprint(nodes[bisect_left(seqs, first) : bisect_right(seqs, last)], on_path)
        for first, last in ranges
    ]


def without_sources(entries: QuerySet[Entry]) -> QuerySet[Entry]:
    """Return the entries that were imported without the messages or entries that they were made
    from. They cannot be rewritten.

    Forgotten messages stay as empty rows, and all former children of a digest are logged.
    """
    messages = Message.objects.filter(IN_RANGE, project=OuterRef("project"))
    children = EntryState.objects.filter(project=OuterRef("project"), parent_id=OuterRef("pk"))
    return entries.filter(~Exists(messages), ~Exists(children), file=None)


def _in_pages(rows: QuerySet[Message], after: int) -> Iterator[Message]:
    """Yield the messages after the seq `after` in order, without their large columns."""
    rows = rows.select_related("author").defer("receipt", "lookups", "tool_calls")
    while page := list(rows.filter(seq__gt=after).order_by("seq")[:PAGE_MESSAGES]):
        yield from page
        if len(page) < PAGE_MESSAGES:
            return
        after = page[-1].seq


def _first_range(messages: Iterable[Message], on_path: Container[UUID]) -> Iterator[Message]:
    """Yield the messages of the range that begins with the first of `messages`."""
    tokens = 0
    for message in messages:
        if message.pk in on_path and contributes(message):
            if tokens and tokens + message.tokens > MAX_RANGE_TOKENS:
                return
            tokens += message.tokens
        yield message


def new_entry(
    session: Session, messages: MessageRange, lines: Sequence[Line], written_by: str, now: datetime
) -> Entry:
    """Return the unsaved entry that covers `messages`, of which at least one contributes."""
    project = session.project
    entry = Entry(
        project=project,
        session=session,
        granularity=Granularity.CONVERSATION,
        zone=project.timezone,
        first_seq=messages.first_seq,
        last_seq=messages.last_seq,
        sources_hash=messages.fingerprint,
        written_by=written_by,
        written_at=now,
    )
    entry.set_lines(lines)
    set_source_times(entry, messages)
    entry.period_key = day_key(entry.last_source_at, project.zone)
    entry.tokens = item_tokens(entry.as_item())
    return entry


def set_source_times(entry: Entry, messages: MessageRange) -> None:
    times = [message.created_at for message in messages.contributing]
    entry.message_count = len(times)
    entry.first_source_at, entry.last_source_at = min(times), max(times)


def active_path(session: Session, after: int = 0) -> Sequence[MessageNode]:
    """Return the messages of the active path after the seq `after`, in order, without their texts.

    Reads a row for each message after `after`, because any of them may be on another branch.
    """
    rows = session.messages.filter(project=session.project_id).after(after)
    return path_to(rows.values_list("pk", "parent_id", "seq", named=True), session.head_id)


def messages_of(
    entry: Entry, read_path: Callable[[Session], Sequence[MessageNode]] | None = None
) -> QuerySet[Message]:
    """Return the messages that a conversation entry was made from, in order; none for a file.

    For many entries of a session, pass a cached `active_path` as `read_path`.
    """
    session = entry.session
    if session is None or entry.first_seq is None or entry.last_seq is None:
        return Message.objects.none()
    path = read_path(session) if read_path else active_path(session, entry.first_seq - 1)
    begin = bisect_left(path, entry.first_seq, key=attrgetter("seq"))
    end = bisect_right(path, entry.last_seq, key=attrgetter("seq"))
    on_path = [node.pk for node in path[begin:end]]
    rows = session.messages.filter(project=entry.project_id)
    return rows.filter(CONTRIBUTING, pk__in=on_path).order_by("seq")


def cover_gaps(session: Session, seqs: Collection[int]) -> None:
    """Create a stale entry for each gap in the coverage that contains one of `seqs`.

    An entry is deleted when no message in its range contributes, for example because another branch
    became active. When the first branch becomes active again, the gap needs a new entry. The
    session must be locked.
    """
    through = Cursor.objects.get(project=session.project_id, pk=session.pk).summarised_through
    entries = session.entries.filter(project=session.project_id, file=None)
    ranges = entries.order_by("first_seq").values_list("first_seq", "last_seq")
    begin = 1
    for first, last in [*ranges, (through + 1, through)]:
        # Conversation entries always have a range.
        assert first is not None and last is not None
        if any(begin <= seq < first for seq in seqs):
            messages = read_range(session, begin - 1, first - 1)
            if messages.contributing:
                entry = new_entry(session, messages, (), "", timezone.now())
                entry.state, entry.withheld, entry.sources_hash = EntryStatus.STALE, True, ""
                entry.save(force_insert=True)
        begin = last + 1
