"""The HNSW indexes of vectors. Each embedder has its own index.

Adding a vector to an HNSW index takes a hundred times as long as writing the row, and a search of
the index also visits vectors of other projects. Therefore vectors are written without being
indexed. The vectors of a small project are compared one by one. The vectors of a large project are
added to the index in batches, in the background. A search uses the index and compares vectors that
are not in it yet, so that it covers all vectors.
"""

import time
from typing import Any
from uuid import UUID
from zlib import crc32

from django.db import connection
from psycopg import sql

from memory.models.chunks import HNSW_PARAMETERS
from memory.recall.embedders import Embedder
from projects.core.database import fetch

# pgvector's limit for HNSW with half precision. Longer vectors are compared one by one.
MAX_INDEXED_DIMENSIONS = 4_000
# The embedder whose index the migrations create, and the name of that index.
BUILT_IN, BUILT_IN_INDEX = "static-minilm-256", "vector_static_minilm_256"
# In projects with at most this number of chunks, all vectors are compared. Others use the index.
MAX_EXACT_CHUNKS = 10_000
# A large project may have this many vectors outside of the index. Comparing them takes 2 ms.
MAX_UNINDEXED_VECTORS = 2_000
# The number of vectors that are added at once. Their rows are locked for some tenths of a second.
BATCH_SIZE = 200
# The number that is marked as `indexed` at once while there is no index.
BULK_BATCH_SIZE = 10_000

_PROJECTS_BEHIND = """
    SELECT project_id FROM memory_corpus corpus
    WHERE chunks > %s AND EXISTS (
        SELECT FROM memory_vector v
        WHERE v.project_id = corpus.project_id AND v.embedder = %s AND NOT v.indexed
        OFFSET %s
    )
"""
_HAS_LARGE_PROJECT = "SELECT EXISTS (SELECT FROM memory_corpus WHERE chunks > %s)"
# Whether most vectors of large projects are outside of the index.
_IS_MOSTLY_UNINDEXED = """
    SELECT count(*) FILTER (WHERE NOT indexed) > count(*) FILTER (WHERE indexed)
    FROM memory_vector WHERE embedder = %s AND project_id IN (
        SELECT project_id FROM memory_corpus WHERE chunks > %s
    )
"""
_ADD_BATCH = """
    UPDATE memory_vector SET indexed = true WHERE (project_id = %(project)s) IS TRUE AND id IN (
        SELECT id FROM memory_vector
        WHERE project_id = %(project)s AND embedder = %(embedder)s AND NOT indexed
        LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    )
"""
_INDEX_STATE = """
    SELECT indisvalid, EXISTS (
        SELECT FROM pg_stat_progress_create_index WHERE index_relid = indexrelid
    ) FROM pg_index WHERE indexrelid = to_regclass(%s)
"""


def add_waiting(embedder: Embedder, seconds: float = float("inf")) -> bool:
    """Add vectors to the index, for at most `seconds`, in large projects with too many outside of
    it.

    Return whether the time ran out before all were added. Do not call this inside a transaction.
    """
    if not has_large_project(embedder):
        return False
    ensure_index(embedder)
    return _add_batches(embedder, BATCH_SIZE, seconds)


def add_all(embedder: Embedder) -> None:
    """Add vectors to the index in all large projects with too many outside of it. Do not call this
    inside a transaction.

    If most of them are not in the index yet, the index is created again, which takes a quarter of
    the time of adding them. In the meantime, searches compare all vectors.
    """
    if not has_large_project(embedder):
        return
    [[is_mostly_unindexed]] = fetch(_IS_MOSTLY_UNINDEXED, [embedder.name, MAX_EXACT_CHUNKS])
    if is_mostly_unindexed:
        _drop_index(embedder)
        _add_batches(embedder, BULK_BATCH_SIZE)
    ensure_index(embedder)
    _add_batches(embedder, BATCH_SIZE)


def ensure_index(embedder: Embedder) -> None:
    """Create the index of the embedder if it does not exist, without blocking reads and writes.

    If a killed process left an unfinished index, it is created again, unless another process is
    creating it now.
    """
    # Either the index is valid, or it is being created now.
    if any(map(any, fetch(_INDEX_STATE, [index_name(embedder)]))):
        return
    _drop_index(embedder)
    fetch(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} ON memory_vector USING hnsw "
            "((embedding::halfvec({})) halfvec_cosine_ops) WITH (m = {}, ef_construction = {}) "
            "WHERE embedder = {} AND indexed"
        ).format(
            sql.Identifier(index_name(embedder)),
            sql.Literal(embedder.dimensions),
            *map(sql.Literal, (HNSW_PARAMETERS["m"], HNSW_PARAMETERS["ef_construction"])),
            sql.Literal(embedder.name),
        )
    )


def projects_behind(embedder: Embedder) -> list[UUID]:
    """Return the large projects with too many vectors that are not in the index."""
    if embedder.dimensions > MAX_INDEXED_DIMENSIONS:
        return []
    limits = [MAX_EXACT_CHUNKS, embedder.name, MAX_UNINDEXED_VECTORS]
    return [project for (project,) in fetch(_PROJECTS_BEHIND, limits)]


def has_large_project(embedder: Embedder) -> bool:
    """Return whether any project is large enough to use the index."""
    if embedder.dimensions > MAX_INDEXED_DIMENSIONS:
        return False
    [[has_one]] = fetch(_HAS_LARGE_PROJECT, [MAX_EXACT_CHUNKS])
    return has_one


def index_name(embedder: Embedder) -> str:
    """Return the name of the embedder's index."""
    if embedder.name == BUILT_IN:
        return BUILT_IN_INDEX
    return f"vector_{crc32(embedder.name.encode()):08x}_{embedder.dimensions}"


def _add_batches(embedder: Embedder, size: int, seconds: float = float("inf")) -> bool:
    """Add vectors to the index in batches. Skip rows that another process has locked.

    Return whether the time ran out.
    """
    end = time.monotonic() + seconds
    for project in projects_behind(embedder):
        parameters: dict[str, Any] = {"project": project, "embedder": embedder.name, "limit": size}
        with connection.cursor() as cursor:
            added = size
            while added:
                if time.monotonic() > end:
                    return True
                cursor.execute(_ADD_BATCH, parameters)
                added = cursor.rowcount
    return False


def _drop_index(embedder: Embedder) -> None:
    name = sql.Identifier(index_name(embedder))
    fetch(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
