"""Each embedder's own index over its vectors, and which vectors stand in it.

To put a vector into an HNSW index takes a hundred times as long as to write it, and finds a
project's own only by passing those of others. So no vector is written into the index: those of a
project are compared one by one until it is large, and then taken in, some at a time, while people
go on. Search asks the index for what is in it and compares the rest: it finds all at any time.
"""

import time
from typing import Any
from uuid import UUID
from zlib import crc32

from django.db import connection
from psycopg import sql

from memory.models.chunks import HNSW
from memory.recall.embedders import Embedder

# pgvector's HNSW takes half vectors of so many dimensions; longer ones are compared one by one.
MOST_DIMENSIONS = 4_000
# The embedder whose index comes with the tables, and that index.
BUILT_IN, BUILT_IN_INDEX = "static-minilm-256", "vector_static_minilm_256"
# Chunks of a project up to which every vector is compared; beyond it the index is asked.
EXACT = 10_000
# Vectors of a larger project that may wait: they are compared in two milliseconds.
WAITING = 2_000
# Vectors that are taken in together; their rows are locked for some tenths of a second.
BATCH = 200
# As many while there is no index.
BULK = 10_000

_BEHIND = """
    SELECT project_id FROM memory_corpus corpus
    WHERE chunks > %s AND EXISTS (
        SELECT FROM memory_vector v
        WHERE v.project_id = corpus.project_id AND v.embedder = %s AND NOT v.indexed
        OFFSET %s
    )
"""
_HAS_LARGE = "SELECT EXISTS (SELECT FROM memory_corpus WHERE chunks > %s)"
# Of what may be in the index, whether more than half is not.
_MOSTLY_WAITS = """
    SELECT count(*) FILTER (WHERE NOT indexed) > count(*) FILTER (WHERE indexed)
    FROM memory_vector WHERE embedder = %s AND project_id IN (
        SELECT project_id FROM memory_corpus WHERE chunks > %s
    )
"""
_TAKE_IN = """
    UPDATE memory_vector SET indexed = true WHERE (project_id = %(project)s) IS TRUE AND id IN (
        SELECT id FROM memory_vector
        WHERE project_id = %(project)s AND embedder = %(embedder)s AND NOT indexed
        LIMIT %(most)s FOR UPDATE SKIP LOCKED
    )
"""


def keep_up(embedder: Embedder, seconds: float = float("inf")) -> bool:
    """Takes in what large projects have waiting, for at most so many seconds; whether that ended
    before all was done. Not inside a transaction.
    """
    if not _has_large(embedder):
        return False
    ensure(embedder)
    return _take_in(embedder, BATCH, seconds)


def fill(embedder: Embedder) -> None:
    """Takes in all that large projects have waiting. Not inside a transaction.

    If that is more than is in the index, the index is made anew, which takes a quarter of the time
    of putting so many in one by one; meanwhile search compares them all.
    """
    if not _has_large(embedder):
        return
    if _mostly_waits(embedder):
        _drop(embedder)
        _take_in(embedder, BULK)
    ensure(embedder)
    _take_in(embedder, BATCH)


_STANDING = """
    SELECT indisvalid, EXISTS (
        SELECT FROM pg_stat_progress_create_index WHERE index_relid = indexrelid
    ) FROM pg_index WHERE indexrelid = to_regclass(%s)
"""


def ensure(embedder: Embedder) -> None:
    """Makes the embedder's index unless it is there, while others go on reading and writing.

    One that was left half-made by a killed process is made again; one that another process is
    making is left to it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, [_name(embedder)])
        valid, in_the_making = cursor.fetchone() or (False, False)
        if valid or in_the_making:
            return
        _drop(embedder)
        cursor.execute(
            sql.SQL(
                "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} ON memory_vector USING hnsw "
                "((embedding::halfvec({})) halfvec_cosine_ops) WITH (m = {}, ef_construction = {}) "
                "WHERE embedder = {} AND indexed"
            ).format(
                sql.Identifier(_name(embedder)),
                sql.Literal(embedder.dimensions),
                *map(sql.Literal, (HNSW["m"], HNSW["ef_construction"])),
                sql.Literal(embedder.name),
            )
        )


def behind(embedder: Embedder) -> list[UUID]:
    """The projects that are too large for so many vectors to wait."""
    if embedder.dimensions > MOST_DIMENSIONS:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_BEHIND, [EXACT, embedder.name, WAITING])
        return [project for (project,) in cursor.fetchall()]


def _take_in(embedder: Embedder, batch: int, seconds: float = float("inf")) -> bool:
    """As `keep_up`, so many at a time, whether there is an index or not. What another process is
    at is left to it.
    """
    end = time.monotonic() + seconds
    for project in behind(embedder):
        with connection.cursor() as cursor:
            moved = batch
            while moved:
                if time.monotonic() > end:
                    return True
                given: dict[str, Any] = {
                    "project": project,
                    "embedder": embedder.name,
                    "most": batch,
                }
                cursor.execute(_TAKE_IN, given)
                moved = cursor.rowcount
    return False


def _has_large(embedder: Embedder) -> bool:
    """Whether there is a project for which the index is asked."""
    if embedder.dimensions > MOST_DIMENSIONS:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_HAS_LARGE, [EXACT])
        return cursor.fetchone()[0]


def _mostly_waits(embedder: Embedder) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_MOSTLY_WAITS, [embedder.name, EXACT])
        return cursor.fetchone()[0]


def _name(embedder: Embedder) -> str:
    if embedder.name == BUILT_IN:
        return BUILT_IN_INDEX
    return f"vector_{crc32(embedder.name.encode()):08x}_{embedder.dimensions}"


def _drop(embedder: Embedder) -> None:
    name = sql.Identifier(_name(embedder))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
