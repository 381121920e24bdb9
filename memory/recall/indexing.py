"""Chunks and vectors follow the record: what changed in a session is cut and embedded anew.

A change of a session raises its cursor's `wanted`, in the transaction of the change. Indexing
claims the sessions that are behind, reads them, embeds outside of any transaction, and commits in
one that checks that it still holds them and that nothing changed meanwhile. The database is the
truth: a lost message or a killed worker delays, and loses nothing.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Case, F, IntegerField, QuerySet, Value, When
from django.db.models.functions import Least, Now

from chat.compiled import CompiledUpdate
from chat.models import Session
from memory.layers.leases import Lease, LeaseLost
from memory.models import Chunk, IndexCursor, SourceType
from memory.models.chunks import IndexCursorQuerySet
from memory.recall import corpus, embedders, reading, summaries, writing
from memory.recall.embedders import Embedder, EmbedderError
from memory.recall.reading import Extent
from projects.models import Project, remove

log = logging.getLogger(__name__)

# Sessions that are indexed together.
BATCH = 50
# Renewed before each batch of texts that is embedded; a killed worker's sessions are free after it.
LEASE = timedelta(seconds=60)


@dataclass
class Progress:
    """What indexing did so far: sessions, chunks written, and sessions that failed."""

    sessions: int = 0
    chunks: int = 0
    failed: int = 0


@dataclass
class Claim:
    """Sessions that one worker holds, with what their cursors said when it took them."""

    holder: UUID
    cursors: list[IndexCursor] = field(default_factory=list)

    @property
    def ids(self) -> list[UUID]:
        return [cursor.pk for cursor in self.cursors]

    @property
    def projects(self) -> set[UUID]:
        return {cursor.project_id for cursor in self.cursors}

    @property
    def held(self) -> IndexCursorQuerySet:
        """Those of the cursors that are still this worker's, by the database's clock."""
        return IndexCursor.objects.filter(
            project__in=self.projects,
            pk__in=self.ids,
            lease_holder=self.holder,
            lease_until__gt=Now(),
        )

    def renew(self) -> None:
        """Starts the lease's time anew. Raises LeaseLost when all were taken over."""
        if not self.held.update(lease_until=Now() + LEASE):
            raise LeaseLost


def mark(session: Session, seq: int) -> None:
    """Has the session indexed from the place `seq` on; in the transaction of the change."""
    if not _marked(session.project_id, session.pk, seq):
        IndexCursor.objects.create(
            session_id=session.pk, project_id=session.project_id, wanted=1, dirty_from=seq
        )


def _marking(project: UUID, session: UUID, seq: int) -> tuple[QuerySet, dict[str, Any]]:
    sooner = Case(
        When(wanted__gt=F("done"), then=Least(F("dirty_from"), Value(seq))),
        default=Value(seq),
        output_field=IntegerField(),
    )
    rows = IndexCursor.objects.filter(project=project, pk=session)
    return rows, {"wanted": F("wanted") + 1, "dirty_from": sooner}


_marked = CompiledUpdate(_marking, UUID, UUID, int)


def mark_all(project: Project) -> None:
    """Has every session and summary of the project indexed from its beginning."""
    IndexCursor.objects.filter(project=project).update(
        wanted=F("wanted") + 1, dirty_from=1, next_try_at=None
    )
    summaries.mark(Project.objects.filter(pk=project.pk))


def catch_up(
    project: Project | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    seconds: float = float("inf"),
    done: Progress | None = None,
) -> Progress:
    """Indexes what is behind, of one project or of all, until nothing is left to do or so many
    seconds are over. Counts on in `done`.
    """
    done = done or Progress()
    embedder = embedders.get()
    end = time.monotonic() + seconds
    due = IndexCursor.objects.due()
    if project is not None:
        due = due.filter(project=project)
    while time.monotonic() < end and (claim := _claim(due)).cursors:
        index(claim, embedder, done)
        progress(done)
    done.chunks += summaries.catch_up(embedder, project, lambda: time.monotonic() < end)
    corpus.recount_changed(project)
    return done


def index_at_once(project: UUID, session: UUID) -> None:
    """Indexes the session here and now, unless somebody else is at it or its texts go to a server
    to be embedded: then, and where it fails, it waits as any other does.
    """
    if not (embedder := embedders.get()).is_here:
        return
    due = IndexCursor.objects.due().filter(project=project, pk=session)
    if (claim := _claim(due)).cursors:
        index(claim, embedder, Progress())


def is_behind() -> bool:
    """Whether there is something to index that nobody is at."""
    return IndexCursor.objects.due().unheld().ready().exists() or summaries.is_behind()


def _claim(due: IndexCursorQuerySet) -> Claim:
    """The next of the sessions that are `due`, the longest waiting first. None waits for
    another.
    """
    claim = Claim(uuid4())
    with transaction.atomic():
        rows = (
            due.unheld()
            .ready()
            .select_related("session", "project")
            .select_for_update(skip_locked=True, of=("self",))
        )
        claim.cursors = list(rows.order_by("pk")[:BATCH])
        IndexCursor.objects.filter(project__in=claim.projects, pk__in=claim.ids).update(
            lease_holder=claim.holder, lease_until=Now() + LEASE
        )
    return claim


def index(claim: Claim, embedder: Embedder, done: Progress) -> None:
    """Indexes the claimed sessions together; where that fails, each by itself, so that one that
    cannot be indexed costs the others nothing.
    """
    try:
        done.chunks += _index(claim, embedder)
        done.sessions += len(claim.cursors)
    except LeaseLost:
        log.info("lease_lost sessions=%s", len(claim.cursors))
    except Exception as error:
        if len(claim.cursors) == 1:
            done.failed += 1
            _give_back(claim, error)
            return
        for cursor in claim.cursors:
            index(Claim(claim.holder, [cursor]), embedder, done)


def _give_back(claim: Claim, error: Exception) -> None:
    """It stays due, tried again later; the admin shows why."""
    [session_id] = claim.ids
    if isinstance(error, EmbedderError):
        log.warning("memory_ingest_failed session=%s reason=%s", session_id, error)
        reason = str(error)
    else:
        log.exception("memory_ingest_failed session=%s", session_id)
        reason = f"Strata itself failed ({type(error).__name__})."
    [project_id] = claim.projects
    Lease(IndexCursor, project_id, session_id, claim.holder).fail(reason)


def _index(claim: Claim, embedder: Embedder) -> int:
    extents = reading.extents(claim.cursors)
    plan = writing.plan(extents, embedder, claim.renew)
    return _commit(claim, extents, plan)


@transaction.atomic
def _commit(claim: Claim, extents: Sequence[Extent], plan: writing.Plan) -> int:
    """Writes the chunks of the sessions that are still held and did not change meanwhile.

    First the sessions' rows, then the cursors', as whoever writes into a session does: nobody
    then waits for the other in a circle.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM chat_session WHERE project_id = ANY(%s) AND id = ANY(%s)"
            " ORDER BY id FOR KEY SHARE",
            [list(claim.projects), claim.ids],
        )
    now = {cursor.pk: cursor for cursor in claim.held.order_by("pk").select_for_update()}
    seen = {cursor.pk: cursor.wanted for cursor in claim.cursors}
    same = {pk for pk, cursor in now.items() if cursor.wanted == seen[pk]}
    written = writing.write(plan, same)
    _move(extents, same)
    # What changed meanwhile is free again, and still due.
    changed = IndexCursor.objects.filter(project__in=claim.projects, pk__in=now.keys() - same)
    changed.update(lease_holder=None, lease_until=None)
    return written


_MOVE = """
    UPDATE memory_indexcursor SET lease_holder = NULL, lease_until = NULL, next_try_at = NULL,
        failures = 0, last_error = '', indexed_through = through, dirty_from = through + 1,
        done = read.done
    FROM unnest(%s::uuid[], %s::uuid[], %s::int[], %s::bigint[])
        read (project, session, through, done)
    WHERE project_id = project AND session_id = session
"""


def _move(extents: Iterable[Extent], same: set[UUID]) -> None:
    """The cursors behind what was read; one whose session is longer than that stays due."""
    moved = [
        (
            cursor.project_id,
            cursor.pk,
            extent.through,
            cursor.done if extent.goes_on else cursor.wanted,
        )
        for extent in extents
        if (cursor := extent.cursor).pk in same
    ]
    if moved:
        with connection.cursor() as database:
            database.execute(_MOVE, [list(column) for column in zip(*moved, strict=True)])


def withdraw(session: Session, seqs: Sequence[int]) -> int:
    """Takes the chunks that hold any of these places out of recall at once, in the transaction of
    the change, and returns how many; what is left of them comes back when the session is indexed.
    """
    if not seqs:
        return 0
    holding = Chunk.objects.filter(
        project_id=session.project_id,
        source_type=SourceType.of(session),
        source=session.pk,
        first_seq__lte=max(seqs),
        last_seq__gte=min(seqs),
    )
    places = set(seqs)
    gone = [
        pk
        for pk, first, last in holding.values_list("pk", "first_seq", "last_seq")
        if any(first <= seq <= last for seq in places)
    ]
    remove(Chunk.objects.filter(project_id=session.project_id, pk__in=gone))
    return len(gone)
