"""Turns become rows: what is new is embedded and added, what changed updated, what is gone goes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache, reduce
from operator import or_
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import Q

from chat import tokens
from memory.models import Chunk, SourceType
from memory.models.chunks import OF_SESSIONS
from memory.recall import corpus, packing, pieces
from memory.recall.embedders import Embedder
from memory.recall.embedders.base import Matrix
from memory.recall.reading import Extent
from projects.identifiers import new_id
from projects.models import remove

Place = tuple[int, int]
# Texts that are embedded at a time.
BATCH = 512
# The columns of a chunk as they are written, with PostgreSQL's types: first those it is known by.
KEY = {
    "project_id": "uuid",
    "source_type": "text",
    "source": "uuid",
    "first_seq": "int",
    "part": "int",
}
REST = {
    "last_seq": "int",
    "role": "text",
    "author_id": "int",
    "speaker": "text",
    "text": "text",
    "tokens": "int",
    "occurred_at": "timestamptz",
    "language": "text",
    "pieces": "bytea",
}
WRITTEN = {"id": "uuid", "session_id": "uuid"} | KEY | REST


@dataclass(frozen=True)
class Plan:
    """What is to be written: chunks with their vectors, and the ids of what goes."""

    chunks: Sequence[Chunk]
    vectors: Matrix
    embedder: str
    gone: Sequence[Chunk]


def plan(extents: Sequence[Extent], embedder: Embedder, renew: Callable[[], None]) -> Plan:
    """Compares the turns with the chunks that are there, and embeds what differs. `renew` is
    called before each batch of texts, and what it raises ends the work. Raises EmbedderError.
    """
    known = _known(extents)
    fresh: list[Chunk] = []
    gone: list[Chunk] = []
    for extent in extents:
        there = known.get(extent.cursor.pk, {})
        for chunk in _chunks(extent):
            old = there.pop((chunk.first_seq, chunk.part), None)
            if old is None or _differs(old, chunk):
                chunk.pk = old.pk if old else chunk.pk
                fresh.append(chunk)
        gone += there.values()
    return prepare(fresh, gone, embedder, renew)


def prepare(
    fresh: Sequence[Chunk],
    gone: Sequence[Chunk],
    embedder: Embedder,
    renew: Callable[[], None] = lambda: None,
) -> Plan:
    """`fresh` with all that is worked out of their texts. Raises EmbedderError."""
    texts = [chunk.text for chunk in fresh]
    for chunk, packed in zip(fresh, pieces.pack(texts), strict=True):
        chunk.pieces = packed
        chunk.tokens = tokens.count(packing.line(chunk.occurred_at, chunk.speaker, chunk.text, UTC))
    return Plan(fresh, embedded(texts, embedder, renew), embedder.name, gone)


def embedded(texts: Sequence[str], embedder: Embedder, renew: Callable[[], None]) -> Matrix:
    """The vectors of `texts`, batch by batch. Raises EmbedderError."""
    rows = []
    for start in range(0, len(texts), BATCH):
        renew()
        rows.append(embedder.documents(texts[start : start + BATCH]))
    return np.concatenate(rows) if rows else np.zeros((0, 1), np.float32)


def _known(extents: Iterable[Extent]) -> dict[UUID, dict[Place, Chunk]]:
    """The chunks that are there where the turns are, by source and place."""
    wanted = reduce(or_, (_within(extent) for extent in extents))
    rows = Chunk.objects.filter(
        wanted,
        project__in={extent.cursor.project_id for extent in extents},
        source_type__in=OF_SESSIONS,
    )
    found: dict[UUID, dict[Place, Chunk]] = {}
    for chunk in rows.defer("terms"):
        found.setdefault(chunk.source, {})[chunk.first_seq, chunk.part] = chunk
    return found


def _within(extent: Extent) -> Q:
    within = Q(source=extent.cursor.pk, first_seq__gte=extent.start)
    return within & Q(first_seq__lte=extent.through) if extent.goes_on else within


def _chunks(extent: Extent) -> Iterator[Chunk]:
    source_type = SourceType.of(extent.cursor.session)
    for turn in extent.turns:
        yield Chunk(
            project_id=extent.cursor.project_id,
            source_type=source_type,
            source=extent.cursor.pk,
            session_id=extent.cursor.pk,
            first_seq=turn.first_seq,
            last_seq=turn.last_seq,
            part=turn.part,
            role=turn.role,
            author_id=extent.author_ids[turn.first_seq],
            speaker=turn.author,
            text=turn.text,
            occurred_at=turn.at,
            language=extent.cursor.project.search_language_name,
        )


def _differs(old: Chunk, new: Chunk) -> bool:
    compared = ("last_seq", "role", "author_id", "speaker", "text", "occurred_at", "language")
    return any(getattr(old, name) != getattr(new, name) for name in compared)


def write(plan: Plan, sources: set[UUID]) -> int:
    """Writes the part of `plan` that belongs to `sources`; how many chunks were written."""
    gone = [chunk for chunk in plan.gone if chunk.source in sources]
    if gone:
        projects = {chunk.project_id for chunk in gone}
        remove(Chunk.objects.filter(project__in=projects, pk__in=[chunk.pk for chunk in gone]))
    places = [place for place, chunk in enumerate(plan.chunks) if chunk.source in sources]
    chunks = [plan.chunks[place] for place in places]
    write_chunks(chunks)
    write_vectors(chunks, plan.vectors[places], plan.embedder)
    corpus.note_changes(chunks, gone)
    return len(chunks)


# Columns as arrays: ten thousands of placeholders take longer to fill in than the rows to write.
_CHUNKS = f"""
    INSERT INTO memory_chunk ({", ".join(WRITTEN)})
    SELECT * FROM unnest({", ".join(f"%s::{kind}[]" for kind in WRITTEN.values())})
    ON CONFLICT ({", ".join(KEY)}) DO UPDATE
    SET {", ".join(f"{name} = excluded.{name}" for name in REST)}
"""


def write_chunks(chunks: Sequence[Chunk]) -> None:
    """Adds the chunks; where there is one in a place already, that one is updated."""
    columns = [array([getattr(chunk, name) for chunk in chunks]) for name in WRITTEN]
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS, columns)


_VECTORS = """
    INSERT INTO memory_vector (id, project_id, chunk_id, embedder, embedding, indexed)
    SELECT id, project, chunk, %s, embedding::halfvec, false
    FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[]) row (id, project, chunk, embedding)
    ON CONFLICT (project_id, embedder, chunk_id) DO UPDATE
    SET embedding = excluded.embedding, indexed = false
"""
_OTHERS = """
    DELETE FROM memory_vector
    WHERE project_id = ANY(%s) AND chunk_id = ANY(%s) AND embedder <> %s
"""


def write_vectors(chunks: Sequence[Chunk], vectors: Matrix, embedder: str) -> None:
    """Keeps the vectors of chunks whose text is new; those of other embedders are void."""
    with connection.cursor() as cursor:
        projects = list({chunk.project_id for chunk in chunks})
        cursor.execute(_OTHERS, [projects, [chunk.pk for chunk in chunks], embedder])
    add_vectors(chunks, vectors, embedder)


def add_vectors(chunks: Sequence[Chunk], vectors: Matrix, embedder: str) -> None:
    """Keeps the vectors of chunks beside those of other embedders."""
    with connection.cursor() as cursor:
        cursor.execute(
            _VECTORS,
            [
                embedder,
                array([new_id() for _ in chunks]),
                array([chunk.project_id for chunk in chunks]),
                array([chunk.pk for chunk in chunks]),
                array(literals(vectors)),
            ],
        )


def array(values: Iterable[object]) -> str:
    """Values as PostgreSQL reads an array of them. The driver takes several times as long."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    if isinstance(value, str):
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


def literals(vectors: Matrix) -> list[str]:
    """Vectors as pgvector reads them, in the half precision in which it keeps them.

    To look each number up takes a sixth of the time of putting it into words.
    """
    halves = _halves()
    rows = vectors.astype(np.float16).view(np.uint16).tolist()
    return [f"[{','.join([halves[bits] for bits in row])}]" for row in rows]


@lru_cache(maxsize=1)
def _halves() -> list[str]:
    """Every number of half precision, by its bits."""
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    return [f"{number:.5g}" for number in numbers.tolist()]
