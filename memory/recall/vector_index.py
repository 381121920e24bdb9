"""Each embedder's own index over its vectors, and which vectors stand in it.

To put a vector into an HNSW index takes a hundred times as long as to write it, and finds a
project's own only by passing those of others. So no vector is written into the index: those of a
project are compared one by one until it is large, and then taken in, some at a time, while people
go on. Search asks the index for what is in it and compares the rest: it finds all at any time.
"""

import time
from uuid import UUID
from zlib import crc32

from django.db import connection
from psycopg import sql

from memory.models.chunks import HNSW
from memory.recall.embedders import Embedder

# pgvector's HNSW takes half vectors of so many dimensions; longer ones are compared one by one.
MOST_DIMENSIONS = 4_000
BUILT_IN = "static-minilm-256"
# Chunks of a project up to which every vector is compared; beyond it the index is asked.
EXACT = 10_000
# Vectors of a larger project that may wait: they are compared in two milliseconds.
WAITING = 2_000
# Vectors that are taken in together; their rows are locked for some tenths of a second.
BATCH = 200

_BEHIND = """
    SELECT project_id FROM memory_corpus corpus
    WHERE chunks > %s AND EXISTS (
        SELECT FROM memory_vector v
        WHERE v.project_id = corpus.project_id AND v.embedder = %s AND NOT v.indexed
        OFFSET %s
    )
"""
_TAKE_IN = """
    UPDATE memory_vector SET indexed = true WHERE id IN (
        SELECT id FROM memory_vector WHERE project_id = %s AND embedder = %s AND NOT indexed
        LIMIT %s FOR UPDATE SKIP LOCKED
    )
"""


def keep_up(embedder: Embedder, seconds: float = float("inf")) -> bool:
    """Takes in what large projects have waiting, for at most so many seconds; whether that ended
    before all was done. Not inside a transaction.
    """
    if not behind(embedder):
        return False
    ensure(embedder)
    return take_in(embedder, seconds)


def behind(embedder: Embedder) -> list[UUID]:
    """The projects that are too large for so many vectors to wait."""
    if embedder.dimensions > MOST_DIMENSIONS:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_BEHIND, [EXACT, embedder.name, WAITING])
        return [project for (project,) in cursor.fetchall()]


def take_in(embedder: Embedder, seconds: float = float("inf")) -> bool:
    """As `keep_up`, whether there is an index or not. What another process is at is left to it."""
    end = time.monotonic() + seconds
    for project in behind(embedder):
        with connection.cursor() as cursor:
            moved = BATCH
            while moved:
                if time.monotonic() > end:
                    return True
                cursor.execute(_TAKE_IN, [project, embedder.name, BATCH])
                moved = cursor.rowcount
    return False


def ensure(embedder: Embedder) -> None:
    """Makes the embedder's index unless it is there, while others go on reading and writing.

    Not inside a transaction. One that was left half-made by a killed process is made again. That
    of the built-in embedder comes with the tables.
    """
    dimensions = embedder.dimensions
    if embedder.name == BUILT_IN or dimensions > MOST_DIMENSIONS:
        return
    name = f"vector_{crc32(embedder.name.encode()):08x}_{dimensions}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        found = cursor.fetchone()
        if found and found[0]:
            return
        if found:
            cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(name)))
        cursor.execute(
            sql.SQL(
                "CREATE INDEX CONCURRENTLY {} ON memory_vector USING hnsw "
                "((embedding::halfvec({})) halfvec_cosine_ops) WITH (m = {}, ef_construction = {}) "
                "WHERE embedder = {} AND indexed"
            ).format(
                sql.Identifier(name),
                sql.Literal(dimensions),
                *map(sql.Literal, (HNSW["m"], HNSW["ef_construction"])),
                sql.Literal(embedder.name),
            )
        )
