"""Reindexing of all sessions, and replacing of vectors after a change of the embedder.

Both run beside a live system and continue where they were stopped: correct chunks and existing
vectors are not written again, and meanwhile search uses the present index.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chat.models import Session
from memory.models import Chunk, IndexCursor, SourceType, Vector
from memory.recall import chunk_writer, embedders, fact_chunks, indexing, summaries, vector_index
from memory.recall.embedders import Embedder
from memory.recall.embedders.base import Matrix
from memory.recall.indexing import IndexingProgress
from projects.core.database import fetch
from projects.models import Project, in_project

# The number of chunks that are embedded and committed together.
BATCH_SIZE = 500
# The number of ids that are read together.
PAGE_SIZE = 5_000
# The wait before checking again whether other workers are done.
POLL_INTERVAL_S = 0.5


@dataclass(frozen=True)
class ReindexProgress:
    """Progress of one step."""

    step: str
    done: int
    total: int


Report = Callable[[ReindexProgress], None]


def reindex(project: Project | None, user, report: Report) -> IndexingProgress:
    """Index the sessions of a project, of a user, or all sessions, from the beginning. Return when
    the only sessions that are due wait after a failure.
    """
    sessions = Session.objects.filter(in_project(project))
    if user is not None:
        sessions = sessions.filter(creator=user)
    total = sum(_mark_sessions(page) for page in _id_pages(sessions))
    if user is None:
        projects = Project.objects.all()
        summaries.mark_changed(projects.filter(pk=project.pk) if project else projects)
    return index_until_done(
        project, lambda progress: report(ReindexProgress("Sessions", progress.sessions, total))
    )


def index_until_done(
    project: Project | None, report: Callable[[IndexingProgress], None] = lambda progress: None
) -> IndexingProgress:
    """Index all due sessions and wait for other workers. Sessions that failed stay due."""
    progress = IndexingProgress()
    while True:
        indexing.catch_up(project, report, progress=progress)
        if not IndexCursor.objects.due().ready().filter(in_project(project)).exists():
            return progress
        time.sleep(POLL_INTERVAL_S)


def replace_vectors(project: Project | None, user, report: Report) -> tuple[int, int]:
    """Embed every chunk that lacks a vector of the current embedder, then delete other vectors.

    Return the numbers of added and deleted vectors. Raises EmbedderError.
    """
    embedder = embedders.get()
    # Facts may have another embedder.
    chunks = Chunk.objects.filter(in_project(project)).exclude(source_type=SourceType.FACT)
    if user is not None:
        chunks = chunks.filter(session__creator=user)
    else:
        projects = Project.objects.filter(pk=project.pk) if project else Project.objects.all()
        for each in projects.order_by("pk").iterator():
            fact_chunks.update_project(each)
    total, done, added = chunks.count(), 0, 0
    for page in _id_pages(chunks):
        for batch in _without_vector(page, embedder):
            added += _add_vectors(batch, chunk_writer.embed(batch, embedder), embedder)
        done += len(page)
        report(ReindexProgress("Vectors", done, total))
    vector_index.add_all(embedder)
    others = Vector.objects.filter(in_project(project)).exclude(embedder=embedder.name)
    deleted, _ = others.filter(chunk__in=chunks).delete()
    return added, deleted


def _id_pages(rows: QuerySet) -> Iterator[dict[UUID, UUID]]:
    """Yield pages of {row id: project id}, ordered by row id."""
    page = dict(rows.order_by("pk").values_list("pk", "project")[:PAGE_SIZE])
    while page:
        yield page
        rest = rows.filter(pk__gt=max(page))
        page = dict(rest.order_by("pk").values_list("pk", "project")[:PAGE_SIZE])


@transaction.atomic
def _mark_sessions(page: dict[UUID, UUID]) -> int:
    """Mark sessions to be indexed from the beginning. Return their number."""
    IndexCursor.objects.bulk_create(
        [IndexCursor(session_id=pk, project_id=project) for pk, project in page.items()],
        ignore_conflicts=True,
    )
    cursors = IndexCursor.objects.filter(project__in=set(page.values()), pk__in=list(page))
    return cursors.mark_changed()


def _without_vector(page: dict[UUID, UUID], embedder: Embedder) -> Iterator[list[Chunk]]:
    """Return the chunks that have no vector of `embedder`, in batches of at most BATCH_SIZE, each
    of one project.

    Vectors are looked up by chunk id: for a join of both tables, the planner's row estimates would
    be unreliable, because the tables have just been filled.
    """
    projects = set(page.values())
    own = Vector.objects.filter(project__in=projects, chunk__in=page, embedder=embedder.name)
    existing = set(own.values_list("chunk", flat=True))
    missing = [pk for pk in page if pk not in existing]
    for start in range(0, len(missing), BATCH_SIZE):
        batch = missing[start : start + BATCH_SIZE]
        rows = Chunk.objects.filter(project__in={page[pk] for pk in batch}, pk__in=batch)
        chunks = rows.order_by("project", "pk").only("project", "text")
        for _project, group in groupby(chunks, key=attrgetter("project_id")):
            yield list(group)


@transaction.atomic
def _add_vectors(batch: Sequence[Chunk], vectors: Matrix, embedder: Embedder) -> int:
    """Write the vectors of the chunks whose text has not changed since it was read."""
    query = (
        "SELECT id, text FROM memory_chunk WHERE project_id = ANY(%s) AND id = ANY(%s)"
        " ORDER BY id FOR SHARE"
    )
    texts = dict(fetch(query, [[it.project_id for it in batch], [it.pk for it in batch]]))
    indexes = [index for index, chunk in enumerate(batch) if texts.get(chunk.pk) == chunk.text]
    chunks = [batch[index] for index in indexes]
    chunk_writer.add_vectors(chunks, vectors[indexes], embedder.name)
    return len(chunks)
