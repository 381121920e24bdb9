"""Writes chunks and their vectors to the search index."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache
from itertools import groupby
from uuid import UUID

import numpy as np

from chat.providers.booking import Payer, embeddings_of
from memory.models import Chunk
from memory.recall import fulltext, wordpieces
from memory.recall.embedders import Embedder
from memory.recall.embedders.base import Matrix
from memory.recall.service import format_excerpt
from projects.core import token_counting
from projects.core.database import fetch
from projects.core.models import new_id
from projects.models import delete_rows

# The number of texts that are embedded between two renewals of the lease. A remote model may need a
# minute for each of its requests, which have 96 texts.
BATCH_SIZE = 512
REMOTE_BATCH_SIZE = 96
# The columns of a chunk with their PostgreSQL types: first the columns that identify it.
KEY_COLUMNS = {
    "project_id": "uuid",
    "source_type": "text",
    "source": "uuid",
    "first_seq": "int",
    "part": "int",
}
UPDATED_COLUMNS = {
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
CHUNK_COLUMNS = {"id": "uuid", "session_id": "uuid"} | KEY_COLUMNS | UPDATED_COLUMNS


@dataclass(frozen=True)
class WritePlan:
    """New and changed chunks with their vectors, and the chunks that will be deleted."""

    chunks: Sequence[Chunk]
    vectors: Matrix
    embedder: str
    obsolete: Sequence[Chunk]


def prepare(
    chunks: Sequence[Chunk],
    obsolete: Sequence[Chunk],
    embedder: Embedder,
    renew: Callable[[], None] = lambda: None,
) -> WritePlan:
    """Compute word pieces, token counts and vectors of `chunks`. Raises EmbedderError.

    `renew` is called between batches of texts, and before each batch that is embedded.
    """
    for start in range(0, len(chunks), BATCH_SIZE):
        if start:
            renew()
        batch = chunks[start : start + BATCH_SIZE]
        texts = [chunk.text for chunk in batch]
        for chunk, packed in zip(batch, wordpieces.pack(texts), strict=True):
            chunk.pieces = packed
            chunk.tokens = token_counting.count(
                format_excerpt(chunk.occurred_at, chunk.speaker, chunk.text, UTC)
            )
    vectors = embed(chunks, embedder, renew)
    return WritePlan(chunks, vectors, embedder.name, obsolete)


def embed(
    chunks: Sequence[Chunk], embedder: Embedder, renew: Callable[[], None] = lambda: None
) -> Matrix:
    """Return the vectors of `chunks`. A remote model gets those of each project and payer
    separately, so that they are booked correctly. Raises EmbedderError.
    """
    payers = [(chunk.project_id, None if embedder.is_local else chunk.payer_id) for chunk in chunks]
    order = sorted(range(len(chunks)), key=lambda index: str(payers[index]))
    size = BATCH_SIZE if embedder.is_local else REMOTE_BATCH_SIZE
    rows = []
    for (project_id, user_id), group in groupby(order, key=lambda index: payers[index]):
        texts = [chunks[index].text for index in group]
        for start in range(0, len(texts), size):
            renew()
            with embeddings_of(project_id, Payer(user_id)):
                rows.append(embedder.embed_documents(texts[start : start + size]))
    vectors: Matrix = np.concatenate(rows) if rows else np.zeros((0, 1), np.float32)
    return vectors[np.argsort(order)] if rows else vectors


def write(plan: WritePlan, sources: set[UUID]) -> int:
    """Write the chunks of `plan` whose source is in `sources`. Return their number."""
    obsolete = [chunk for chunk in plan.obsolete if chunk.source in sources]
    if obsolete:
        projects = {chunk.project_id for chunk in obsolete}
        ids = [chunk.pk for chunk in obsolete]
        delete_rows(Chunk.objects.filter(project__in=projects, pk__in=ids))
    indexes = [index for index, chunk in enumerate(plan.chunks) if chunk.source in sources]
    chunks = [plan.chunks[index] for index in indexes]
    write_chunks(chunks)
    write_vectors(chunks, plan.vectors[indexes], plan.embedder)
    fulltext.record_changes(chunks, obsolete)
    return len(chunks)


# The rows are passed as one array per column, because filling in tens of thousands of placeholders
# takes longer than writing the rows.
_UPSERT_CHUNKS = f"""
    INSERT INTO memory_chunk ({", ".join(CHUNK_COLUMNS)})
    SELECT * FROM unnest({", ".join(f"%s::{kind}[]" for kind in CHUNK_COLUMNS.values())})
    ON CONFLICT ({", ".join(KEY_COLUMNS)}) DO UPDATE
    SET {", ".join(f"{name} = excluded.{name}" for name in UPDATED_COLUMNS)}
    RETURNING id, {", ".join(KEY_COLUMNS)}
"""


def write_chunks(chunks: Sequence[Chunk]) -> None:
    """Insert the chunks or update existing ones. Then set their ids to the stored ids.

    The ids can differ, because another worker may have written the same chunk in the meantime.
    """
    columns = [array_literal([getattr(chunk, name) for chunk in chunks]) for name in CHUNK_COLUMNS]
    ids = {tuple(key): pk for pk, *key in fetch(_UPSERT_CHUNKS, columns)}
    for chunk in chunks:
        chunk.pk = ids[tuple(getattr(chunk, name) for name in KEY_COLUMNS)]


_UPSERT_VECTORS = """
    INSERT INTO memory_vector (id, project_id, chunk_id, embedder, embedding, indexed)
    SELECT id, project, chunk, %s, embedding::halfvec, false
    FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::text[]) row (id, project, chunk, embedding)
    ON CONFLICT (project_id, embedder, chunk_id) DO UPDATE
    SET embedding = excluded.embedding, indexed = false
"""
_DELETE_OTHER_VECTORS = """
    DELETE FROM memory_vector
    WHERE project_id = ANY(%s) AND chunk_id = ANY(%s) AND embedder <> %s
"""


def write_vectors(chunks: Sequence[Chunk], vectors: Matrix, embedder: str) -> None:
    """Write the vectors of changed chunks. Delete their vectors of other embedders."""
    projects = list({chunk.project_id for chunk in chunks})
    fetch(_DELETE_OTHER_VECTORS, [projects, [chunk.pk for chunk in chunks], embedder])
    add_vectors(chunks, vectors, embedder)


def add_vectors(chunks: Sequence[Chunk], vectors: Matrix, embedder: str) -> None:
    """Write the vectors of chunks. Keep their vectors of other embedders."""
    columns: tuple[Iterable[object], ...] = (
        [new_id() for _ in chunks],
        [chunk.project_id for chunk in chunks],
        [chunk.pk for chunk in chunks],
        vector_literals(vectors),
    )
    fetch(_UPSERT_VECTORS, [embedder, *map(array_literal, columns)])


def array_literal(values: Iterable[object]) -> str:
    """Return an array in PostgreSQL's text format, several times as fast as the driver."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    if isinstance(value, str):
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


def vector_literals(vectors: Matrix) -> list[str]:
    """Return vectors in pgvector's text format, rounded to half precision, in which they are
    stored.

    Numbers are looked up in a table, which takes a sixth of the time of formatting each number.
    """
    texts = _half_precision_texts()
    rows = vectors.astype(np.float16).view(np.uint16).tolist()
    return [f"[{','.join([texts[bits] for bits in row])}]" for row in rows]


@lru_cache(maxsize=1)
def _half_precision_texts() -> list[str]:
    """Return the texts of all half-precision numbers, indexed by their bits."""
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    return [f"{number:.5g}" for number in numbers.tolist()]
