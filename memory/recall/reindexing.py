"""Everything anew, beside a living system: the record into chunks, and chunks into vectors.

Both go on where they were stopped. Chunks that are right already are not touched, and vectors that
are there are not made again; search goes on meanwhile on what is there.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet

from chat.models import Session
from memory.models import Chunk, IndexCursor, Vector
from memory.recall import embedders, indexing, summaries, vector_index, writing
from memory.recall.embedders import Embedder
from memory.recall.indexing import Progress
from projects.models import Project

# Chunks that are embedded and committed together.
BATCH = 500
# Chunks whose vectors are looked for together.
LOOKED_AT = 5_000
# Sessions that are marked together.
MARKED = 5_000
# Seconds between two looks at what other workers are still at.
WAIT = 0.5


@dataclass(frozen=True)
class Step:
    """How far one step is."""

    what: str
    done: int
    total: int


Tell = Callable[[Step], None]


def rebuild(project: Project | None, user, tell: Tell) -> Progress:
    """Has every session indexed from its beginning, and waits until it is."""
    sessions = Session.objects.all()
    if project is not None:
        sessions = sessions.filter(project=project)
    if user is not None:
        sessions = sessions.filter(creator=user)
    total = _mark(sessions)
    if user is None:
        summaries.mark(Project.objects.filter(pk=project.pk) if project else Project.objects.all())
    return settle(project, lambda done: tell(Step("Sessions", done.sessions, total)))


def settle(
    project: Project | None, progress: Callable[[Progress], None] = lambda progress: None
) -> Progress:
    """Indexes what is behind and waits for what other workers hold. What failed is left."""
    done = Progress()
    while True:
        indexing.catch_up(project, progress, done=done)
        held = IndexCursor.objects.due().ready()
        if project is not None:
            held = held.filter(project=project)
        if not held.exists():
            return done
        time.sleep(WAIT)


def _mark(sessions: QuerySet[Session]) -> int:
    """Marks the sessions to be indexed from their beginning; how many they are."""
    marked = 0
    last: UUID | None = None
    while True:
        rows = sessions.filter(pk__gt=last) if last else sessions
        batch = list(rows.order_by("pk").values_list("pk", "project_id")[:MARKED])
        if not batch:
            return marked
        last, marked = batch[-1][0], marked + len(batch)
        with transaction.atomic():
            IndexCursor.objects.bulk_create(
                [IndexCursor(session_id=pk, project_id=project) for pk, project in batch],
                ignore_conflicts=True,
            )
            cursors = IndexCursor.objects.filter(
                project__in={project for _, project in batch}, pk__in=[pk for pk, _ in batch]
            )
            cursors.update(wanted=F("wanted") + 1, dirty_from=1, next_try_at=None)


def embed(project: Project | None, user, tell: Tell) -> tuple[int, int]:
    """Gives every chunk its vector of the embedder that is set now, and then removes those of
    others; how many were added and removed. Raises EmbedderError.
    """
    embedder = embedders.get()
    chunks = Chunk.objects.all()
    if project is not None:
        chunks = chunks.filter(project=project)
    if user is not None:
        chunks = chunks.filter(session__creator=user)
    added = _add(chunks, embedder, tell)
    vector_index.fill(embedder)
    others = Vector.objects.exclude(embedder=embedder.name)
    if project is not None:
        others = others.filter(project=project)
    removed, _ = others.filter(chunk__in=chunks).delete()
    return added, removed


def _add(chunks: QuerySet[Chunk], embedder: Embedder, tell: Tell) -> int:
    total, seen, added = chunks.count(), 0, 0
    last: UUID | None = None
    while True:
        rows = chunks.filter(pk__gt=last) if last else chunks
        some = dict(rows.order_by("pk").values_list("pk", "project")[:LOOKED_AT])
        if not some:
            return added
        last, seen = max(some), seen + len(some)
        for batch in _without(some, embedder):
            vectors = embedder.documents([chunk.text for chunk in batch])
            added += _keep(batch, vectors, embedder)
        tell(Step("Vectors", seen, total))


def _without(some: Mapping[UUID, UUID], embedder: Embedder) -> Iterator[list[Chunk]]:
    """Those chunks that have no vector of `embedder`, BATCH by BATCH; `some` are the projects of
    chunks by their ids, in the order of these.

    They are looked up by id: a join of all chunks with all vectors would be as slow as the
    planner's idea of two tables that have just been filled.
    """
    projects = set(some.values())
    own = Vector.objects.filter(project__in=projects, chunk__in=some, embedder=embedder.name)
    there = set(own.values_list("chunk", flat=True))
    missing = [pk for pk in some if pk not in there]
    for place in range(0, len(missing), BATCH):
        batch = missing[place : place + BATCH]
        rows = Chunk.objects.filter(project__in={some[pk] for pk in batch}, pk__in=batch)
        if chunks := list(rows.order_by("pk").only("project", "text")):
            yield chunks


@transaction.atomic
def _keep(batch, vectors, embedder: Embedder) -> int:
    """Keeps the vectors of the chunks that are still what they were when they were read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, text FROM memory_chunk WHERE project_id = ANY(%s) AND id = ANY(%s)"
            " ORDER BY id FOR SHARE",
            [[chunk.project_id for chunk in batch], [chunk.pk for chunk in batch]],
        )
        now = dict(cursor.fetchall())
    places = [place for place, one in enumerate(batch) if now.get(one.pk) == one.text]
    chunks = [batch[place] for place in places]
    writing.add_vectors(chunks, vectors[places], embedder.name)
    return len(chunks)
