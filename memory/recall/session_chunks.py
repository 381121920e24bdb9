"""Chunks of sessions: read changed messages, group them into turns, compare with the index."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from operator import or_
from uuid import UUID

from django.conf import settings
from django.db.models import Max, Min, Q

from chat.conversations.branches import path_to
from chat.models import Message, Role, Session
from memory.layers.coverage import contributes
from memory.models import Chunk, IndexCursor, SourceType
from memory.models.chunks import SESSION_SOURCES
from memory.recall import chunk_writer, chunking
from memory.recall.chunking import ChunkingRules, TurnChunk
from memory.recall.embedders import Embedder
from projects.models import Project

# The columns of a message that chunking needs.
MESSAGE_COLUMNS = (
    *("session", "seq", "parent", "role", "author", "author_name", "text", "status"),
    *("remembered", "deleted_at", "copied_from", "created_at"),
)
# The number of messages that are read at once. A longer session is indexed in several stretches.
STRETCH_MESSAGES = 2_000
# A chunk is written again if one of these columns differs. The other columns are derived from
# these.
COMPARED_COLUMNS = chunk_writer.UPDATED_COLUMNS.keys() - {"tokens", "pieces"}


@dataclass(frozen=True)
class SessionStretch:
    """The turns of a session from message `start` to message `through`.

    `has_more` is true if later messages have not been read yet.
    """

    cursor: IndexCursor
    start: int
    through: int
    turns: Sequence[TurnChunk]
    has_more: bool

    @property
    def chunk_filter(self) -> Q:
        """Return the condition for the existing chunks of this stretch."""
        condition = Q(source=self.cursor.pk, first_seq__gte=self.start)
        return condition & Q(first_seq__lte=self.through) if self.has_more else condition

    def chunks(self) -> Iterator[Chunk]:
        """Return the chunks that should exist for this stretch, unsaved."""
        cursor = self.cursor
        source_type = SourceType.of(cursor.session)
        payer_id = None
        for turn in self.turns:
            chunk = Chunk(
                project_id=cursor.project_id,
                source_type=source_type,
                source=cursor.pk,
                session_id=cursor.pk,
                first_seq=turn.first_seq,
                last_seq=turn.last_seq,
                part=turn.part,
                role=turn.role,
                author_id=turn.author_id,
                speaker=turn.speaker,
                text=turn.text,
                occurred_at=turn.at,
                language=cursor.project.search_language_name,
            )
            # The author of the message before a reply pays for the embedding of the reply.
            if turn.role != Role.ASSISTANT:
                payer_id = turn.author_id
            chunk.payer_id = payer_id
            yield chunk


def unread_messages(cursor: IndexCursor) -> int:
    """Return the approximate number of messages in the next stretch of the session."""
    return min(max(cursor.session.last_seq - cursor.dirty_from + 1, 1), STRETCH_MESSAGES)


def read_stretches(
    cursors: Sequence[IndexCursor], renew: Callable[[], None]
) -> list[SessionStretch]:
    """Return the turns of each session from the point where its chunks may have to change.

    `renew` is called after each turn, because splitting megabytes of messages takes longer than a
    lease. It may raise an error to stop the work.
    """
    starts = _starts(cursors)
    stretches = (
        Q(session=pk, seq__gte=start, seq__lt=start + STRETCH_MESSAGES)
        for pk, start in starts.items()
    )
    projects = {cursor.project_id for cursor in cursors}
    rows = Message.objects.filter(reduce(or_, stretches), project__in=projects)
    rows = rows.prefetch_related("author").only(*MESSAGE_COLUMNS).order_by("session", "seq")
    messages: dict[UUID, list[Message]] = {}
    for message in rows:
        messages.setdefault(message.session_id, []).append(message)
    return [
        _make_stretch(cursor, starts[cursor.pk], messages.get(cursor.pk, []), renew)
        for cursor in cursors
    ]


def _starts(cursors: Sequence[IndexCursor]) -> dict[UUID, int]:
    """Return the seq at which chunking starts in each session: at the last chunk that begins before
    the change, because that chunk may become longer or shorter.
    """
    before = reduce(
        or_, (Q(source=cursor.pk, first_seq__lt=cursor.dirty_from) for cursor in cursors)
    )
    projects = {cursor.project_id for cursor in cursors}
    chunks = Chunk.objects.filter(before, project__in=projects, source_type__in=SESSION_SOURCES)
    last = dict(
        chunks.values("source").annotate(Max("first_seq")).values_list("source", "first_seq__max")
    )
    return {cursor.pk: _start(cursor.dirty_from, last.get(cursor.pk, 1)) for cursor in cursors}


def _start(dirty_from: int, last_chunk: int) -> int:
    """Return `last_chunk`, or `dirty_from` if the chunk begins too long before the change."""
    return last_chunk if dirty_from - last_chunk < STRETCH_MESSAGES // 2 else dirty_from


def _make_stretch(
    cursor: IndexCursor, start: int, messages: Sequence[Message], renew: Callable[[], None]
) -> SessionStretch:
    session = cursor.session
    final = list(takewhile(lambda message: message.is_final, messages))
    through = final[-1].seq if final else start - 1
    has_read_all = len(final) == len(messages)
    if has_read_all:
        # An imported chat may lack the last messages, because an export has no text of others.
        # The stretch includes their numbers; otherwise the session would stay due forever.
        through = max(through, min(session.last_seq, start + STRETCH_MESSAGES - 1))
    if not messages and through < session.last_seq:
        # An imported chat may lack millions of numbers, which would take thousands of stretches.
        rest = session.messages.filter(project=session.project_id, seq__gt=through)
        through = (rest.aggregate(Min("seq"))["seq__min"] or session.last_seq + 1) - 1
    has_more = has_read_all and session.last_seq > through
    path = _active_path(session, start, messages)
    indexed = [message for message in final if message.pk in path and _is_read(message)]
    turns = []
    for turn in chunking.chunk_messages(indexed, chunking_rules(session, cursor.project)):
        turns.append(turn)
        renew()
    if has_more and turns:
        # The last turn may continue, so the next stretch begins with it.
        through = _start(through + 1, turns[-1].first_seq + 1) - 1
    return SessionStretch(cursor, start, through, turns, has_more)


def _active_path(session: Session, start: int, messages: Sequence[Message]) -> set[UUID]:
    """Return the ids of the messages on the active path; `messages` begin at `start`."""
    tree: Iterable[Message] = messages
    if messages and session.last_seq > messages[-1].seq:
        rest = session.messages.filter(project=session.project_id, seq__gte=start)
        tree = rest.only("session", "parent", "seq")
    return {message.pk for message in path_to(tree, session.head_id)}


def _is_read(message: Message) -> bool:
    """Return whether chunking needs a message. Roles that are not indexed still end turns."""
    is_separator = message.role not in chunking.INDEXED_ROLES and not message.deleted_at
    return contributes(message) or is_separator


def chunking_rules(session: Session, project: Project) -> ChunkingRules:
    """Return the chunking rules for a session. Each note becomes its own chunk, however short."""
    if session.is_notes:
        return ChunkingRules(min_chars=1, merge=False)
    return ChunkingRules(
        min_chars=project.min_index_chars,
        roles=frozenset(project.indexed_roles),
        language=project.search_language_name,
        merge=settings.MERGE_TURNS,
    )


def plan_chunks(
    stretches: Sequence[SessionStretch], embedder: Embedder, renew: Callable[[], None]
) -> chunk_writer.WritePlan:
    """Compare the turns with the existing chunks, and embed the turns that differ.

    `renew` is called before each batch of texts, and may raise to stop the work. Raises
    EmbedderError.
    """
    existing: dict[UUID, dict[tuple[int, int], Chunk]] = {}
    rows = Chunk.objects.filter(
        reduce(or_, (stretch.chunk_filter for stretch in stretches)),
        project__in={stretch.cursor.project_id for stretch in stretches},
        source_type__in=SESSION_SOURCES,
    )
    for chunk in rows.defer("terms"):
        existing.setdefault(chunk.source, {})[chunk.first_seq, chunk.part] = chunk
    changed: list[Chunk] = []
    obsolete: list[Chunk] = []
    for stretch in stretches:
        remaining = existing.get(stretch.cursor.pk, {})
        for chunk in stretch.chunks():
            old = remaining.pop((chunk.first_seq, chunk.part), None)
            if old is None or any(
                getattr(old, name) != getattr(chunk, name) for name in COMPARED_COLUMNS
            ):
                chunk.pk = old.pk if old else chunk.pk
                changed.append(chunk)
        obsolete += remaining.values()
    return chunk_writer.prepare(changed, obsolete, embedder, renew)
