"""Indexing: keeps chunks and vectors up to date with the sessions.

A change of a session increments `wanted` of its cursor, in the transaction of the change. Indexing
claims the sessions that are behind, reads them, embeds outside of any transaction, and commits only
the sessions that it still holds and that did not change meanwhile. The database is the source of
truth: a lost task or a killed worker causes a delay, and loses nothing.
"""

import logging
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models.functions import Now

from chat.models import Session
from memory.leases import Lease, LeaseLostError
from memory.models import Chunk, EntriesChanged, IndexCursor, SourceType
from memory.models.chunks import IndexCursorQuerySet
from memory.recall import chunk_writer, embedders, fulltext, session_chunks, summaries
from memory.recall.embedders import Embedder, EmbedderError
from memory.recall.session_chunks import SessionStretch
from projects.core.database import fetch, server_cursor
from projects.core.errors import INTERNAL_FAILURE
from projects.models import Project, delete_rows, in_project

log = logging.getLogger(__name__)

# The maximum number of sessions that are indexed together, and of their messages: the texts, chunks
# and vectors of all are in memory at the same time.
BATCH_SIZE = 50
BATCH_MESSAGES = 5_000
# The lease is renewed while messages are cut, and before each batch of texts is embedded. If a
# worker is killed, other workers can claim its sessions when the lease has expired. All attempts of
# a remote embedder at one batch take up to 260 seconds.
LEASE = timedelta(minutes=5)


@dataclass
class IndexingProgress:
    """Sessions indexed so far, chunks written, and sessions that failed."""

    sessions: int = 0
    chunks: int = 0
    failed: int = 0


@dataclass
class Claim:
    """Sessions that one worker holds, with their cursors as they were when it claimed them."""

    holder: UUID
    cursors: list[IndexCursor] = field(default_factory=list)
    renewed_at: float = field(default_factory=time.monotonic)

    @property
    def ids(self) -> list[UUID]:
        return [cursor.pk for cursor in self.cursors]

    @property
    def projects(self) -> set[UUID]:
        return {cursor.project_id for cursor in self.cursors}

    @property
    def held(self) -> IndexCursorQuerySet:
        """Return the cursors that the worker still holds, by the clock of the database."""
        return IndexCursor.objects.filter(
            project__in=self.projects,
            pk__in=self.ids,
            lease_holder=self.holder,
            lease_until__gt=Now(),
        )

    def renew(self) -> None:
        """Extend the lease. Raises LeaseLostError if none of the sessions is still held."""
        if not self.held.update(lease_until=Now() + LEASE):
            raise LeaseLostError
        self.renewed_at = time.monotonic()

    def renew_in_time(self) -> None:
        """Extend the lease if a third of it is over. Raises LeaseLostError like `renew`."""
        if time.monotonic() - self.renewed_at > LEASE.total_seconds() / 3:
            self.renew()


# Plain SQL: it runs twice for each message, and Django takes 2 ms to compile it.
_MARK_CHANGED = """
    UPDATE memory_indexcursor
    SET wanted = wanted + 1, dirty_from = LEAST(dirty_from, %(seq)s)
    WHERE project_id = %(project)s AND session_id = %(session)s
"""


def mark_changed(session: Session, seq: int) -> None:
    """Mark the session to be indexed from `seq` on. Call it in the transaction of the change."""
    with server_cursor() as cursor:
        cursor.execute(
            _MARK_CHANGED, {"project": session.project_id, "session": session.pk, "seq": seq}
        )
        is_known = cursor.rowcount
    if not is_known:
        IndexCursor.objects.create(
            session_id=session.pk, project_id=session.project_id, wanted=1, dirty_from=1
        )


def mark_project(project: Project) -> None:
    """Mark every session and summary of the project to be indexed from the beginning."""
    IndexCursor.objects.filter(project=project).mark_changed()
    summaries.mark_changed(Project.objects.filter(pk=project.pk))


def catch_up(
    project: Project | None = None,
    report: Callable[[IndexingProgress], None] = lambda progress: None,
    seconds: float = float("inf"),
    progress: IndexingProgress | None = None,
) -> IndexingProgress:
    """Index the due sessions of one project or of all, for at most `seconds`.

    Adds to `progress` and returns it; `report` is called after each batch of sessions.
    """
    progress = progress or IndexingProgress()
    embedder = embedders.get()
    end = time.monotonic() + seconds
    due = IndexCursor.objects.due().filter(in_project(project))
    while time.monotonic() < end and (claim := claim_sessions(due)).cursors:
        index_claim(claim, embedder, progress)
        report(progress)
    progress.chunks += summaries.catch_up(embedder, project, lambda: time.monotonic() < end)
    fulltext.recount_due(project)
    return progress


def index_session_now(project: UUID, session: UUID) -> None:
    """Index the session at once, unless another worker holds it or the embedder is remote.

    In these cases, and after a failure, the session stays due.
    """
    if not (embedder := embedders.get()).is_local:
        return
    due = IndexCursor.objects.due().filter(project=project, pk=session)
    if (claim := claim_sessions(due)).cursors:
        index_claim(claim, embedder, IndexingProgress())


def is_behind() -> bool:
    """Return whether there is something to index that no worker holds."""
    return IndexCursor.objects.due().unleased().ready().exists() or EntriesChanged.objects.exists()


def claim_sessions(due: IndexCursorQuerySet) -> Claim:
    """Claim the next of the sessions that are `due`, without waiting for other workers."""
    claim = Claim(uuid4())
    with transaction.atomic():
        rows = (
            due.unleased()
            .ready()
            .select_related("session", "project")
            .select_for_update(skip_locked=True, of=("self",))
        )
        claim.cursors = _first_messages(list(rows.order_by("pk")[:BATCH_SIZE]))
        IndexCursor.objects.filter(project__in=claim.projects, pk__in=claim.ids).update(
            lease_holder=claim.holder, lease_until=Now() + LEASE
        )
    return claim


def _first_messages(cursors: Sequence[IndexCursor]) -> list[IndexCursor]:
    """Return the first cursors, with at most BATCH_MESSAGES unread messages, but at least one."""
    messages = accumulate(session_chunks.unread_messages(cursor) for cursor in cursors)
    return [
        cursor
        for index, (cursor, total) in enumerate(zip(cursors, messages, strict=True))
        if index == 0 or total <= BATCH_MESSAGES
    ]


def index_claim(claim: Claim, embedder: Embedder, progress: IndexingProgress) -> None:
    """Index the claimed sessions together. If that fails, index each by itself, so that one session
    that cannot be indexed does not affect the others.
    """
    try:
        stretches = session_chunks.read_stretches(claim.cursors, claim.renew_in_time)
        plan = session_chunks.plan_chunks(stretches, embedder, claim.renew)
        written, sessions = _commit(claim, stretches, plan)
        progress.chunks += written
        progress.sessions += sessions
    except LeaseLostError:
        log.info("lease_lost sessions=%s", len(claim.cursors))
    except Exception as error:
        if len(claim.cursors) == 1:
            progress.failed += 1
            _record_failure(claim, error)
            return
        with suppress(LeaseLostError):
            claim.renew()
        for cursor in claim.cursors:
            index_claim(Claim(claim.holder, [cursor], claim.renewed_at), embedder, progress)


def _record_failure(claim: Claim, error: Exception) -> None:
    """Release the session, to be tried again later; the admin shows the reason."""
    [session_id] = claim.ids
    if isinstance(error, EmbedderError):
        log.warning("memory_ingest_failed session=%s reason=%s", session_id, error)
        reason = str(error)
    else:
        log.exception("memory_ingest_failed session=%s", session_id)
        reason = f"{INTERNAL_FAILURE}: {type(error).__name__}."
    [project_id] = claim.projects
    Lease(IndexCursor, project_id, session_id, claim.holder).fail(reason)


@transaction.atomic
def _commit(
    claim: Claim, stretches: Sequence[SessionStretch], plan: chunk_writer.WritePlan
) -> tuple[int, int]:
    """Write the chunks of the sessions that are still held and did not change meanwhile. Return the
    numbers of these chunks and sessions.

    Sessions are locked before cursors, as in a write to a session, so that there are no deadlocks.
    """
    fetch(
        "SELECT id FROM chat_session WHERE project_id = ANY(%s) AND id = ANY(%s)"
        " ORDER BY id FOR KEY SHARE",
        [list(claim.projects), claim.ids],
    )
    held = {cursor.pk: cursor for cursor in claim.held.order_by("pk").select_for_update()}
    wanted = {cursor.pk: cursor.wanted for cursor in claim.cursors}
    unchanged = {pk for pk, cursor in held.items() if cursor.wanted == wanted[pk]}
    written = chunk_writer.write(plan, unchanged)
    _advance_cursors(stretch for stretch in stretches if stretch.cursor.pk in unchanged)
    # Sessions that changed meanwhile are released and still due.
    changed = IndexCursor.objects.filter(project__in=claim.projects, pk__in=held.keys() - unchanged)
    changed.update(lease_holder=None, lease_until=None)
    return written, len(unchanged)


_ADVANCE = """
    UPDATE memory_indexcursor SET lease_holder = NULL, lease_until = NULL, next_try_at = NULL,
        failures = 0, last_error = '', indexed_through = through, dirty_from = through + 1,
        done = read.done
    FROM unnest(%s::uuid[], %s::uuid[], %s::int[], %s::bigint[])
        read (project, session, through, done)
    WHERE project_id = project AND session_id = session
"""


def _advance_cursors(stretches: Iterable[SessionStretch]) -> None:
    """Advance each cursor to the end of its stretch. A session with more messages stays due."""
    rows = [
        (
            stretch.cursor.project_id,
            stretch.cursor.pk,
            stretch.through,
            stretch.cursor.done if stretch.has_more else stretch.cursor.wanted,
        )
        for stretch in stretches
    ]
    if rows:
        with connection.cursor() as database:
            database.execute(_ADVANCE, [list(column) for column in zip(*rows, strict=True)])


def remove_chunks(session: Session, seqs: Sequence[int]) -> int:
    """Remove the chunks with any of these messages from recall at once. Return their number.

    Call it in the transaction of the change. Indexing adds the remaining messages again.
    """
    if not seqs:
        return 0
    overlapping = Chunk.objects.filter(
        project_id=session.project_id,
        source_type=SourceType.of(session),
        source=session.pk,
        first_seq__lte=max(seqs),
        last_seq__gte=min(seqs),
    )
    removed = sorted(seqs)
    ids = [
        pk
        for pk, first, last in overlapping.values_list("pk", "first_seq", "last_seq")
        if bisect_left(removed, first) < bisect_right(removed, last)
    ]
    delete_rows(Chunk.objects.filter(project_id=session.project_id, pk__in=ids))
    return len(ids)
