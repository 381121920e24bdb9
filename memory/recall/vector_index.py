"""Each embedder's own index over its vectors. That of the built-in one comes with the tables."""

from zlib import crc32

from django.db import connection
from psycopg import sql

from memory.recall.embedders import Embedder

# pgvector's HNSW takes half vectors of so many dimensions; longer ones are compared one by one.
MOST_DIMENSIONS = 4_000
BUILT_IN = "static-minilm-256"


def ensure(embedder: Embedder) -> None:
    """Makes the embedder's index unless it is there, while others go on reading and writing.

    Not inside a transaction. One that was left half-made by a killed process is made again.
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
                "((embedding::halfvec({})) halfvec_cosine_ops) WHERE embedder = {}"
            ).format(sql.Identifier(name), sql.Literal(dimensions), sql.Literal(embedder.name))
        )
