"""Projects full of made-up talk, straight into the tables: how they are made is not measured.

The rows are those that indexing would have written, the vectors the built-in embedder's.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from chat.models import Session
from memory.models import Corpus
from memory.recall import fulltext, vector_index, wordpieces
from memory.recall.chunk_writer import CHUNK_COLUMNS
from memory.recall.embedders import normalise
from memory.recall.embedders.static import get_static_embedder
from projects.core.models import new_id
from projects.models import Project
from tests.bench import generated_text

A_TALK = 50
BATCH = 10_000
BEGIN = datetime(2025, 1, 1, 9, tzinfo=UTC)
VECTOR = {
    "id": "uuid",
    "project_id": "uuid",
    "chunk_id": "uuid",
    "embedder": "text",
    # As bytes: in pgvector's own form.
    "embedding": "bytea",
    "indexed": "bool",
}


def fill(owner, sizes: Sequence[int], seed: int) -> list[Project]:
    """Projects with so many chunks each. Those that are large stand in the vector index."""
    projects = [Project(name=f"P{new_id()}", slug=f"p{new_id()}") for _ in sizes]
    Project.objects.bulk_create(projects)
    whose = [
        project
        for project, size in zip(projects, sizes, strict=True)
        for _ in range(0, size, A_TALK)
    ]
    large = {
        project.pk
        for project, size in zip(projects, sizes, strict=True)
        if size > vector_index.MAX_EXACT_CHUNKS
    }
    talks = generated_text.talks(seed, len(whose) * A_TALK, A_TALK)
    with without_indexes():
        while batch := list(islice(zip(whose, talks, strict=False), BATCH // A_TALK)):
            _write(owner, batch, large)
            whose = whose[len(batch) :]
    Corpus.objects.bulk_create(Corpus(project=project) for project in projects)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for project in projects:
        fulltext.recount(project.pk)
    return projects


def _write(owner, batch: list[tuple[Project, list[str]]], large: set[UUID]) -> None:
    texts = [text for _, talk in batch for text in talk]
    vectors = halfvecs(get_static_embedder().embed_documents(texts))
    packed = iter(zip(texts, wordpieces.pack(texts), vectors, strict=True))
    sessions, chunks, chunk_rows = [], [], []
    for project, talk in batch:
        session = Session(project=project, creator=owner, last_seq=len(talk))
        sessions.append(session)
        for seq, (text, ids, vector) in enumerate(islice(packed, len(talk)), start=1):
            chunk = {
                "id": new_id(),
                "session_id": session.pk,
                "project_id": project.pk,
                "source_type": "turn",
                "source": session.pk,
                "first_seq": seq,
                "part": 0,
                "last_seq": seq,
                "role": ("user", "assistant")[seq % 2],
                "author_id": owner.pk,
                "speaker": owner.username,
                "text": text,
                "tokens": len(text) // 4,
                "occurred_at": BEGIN + timedelta(minutes=len(chunks)),
                "language": "english",
                "pieces": ids,
            }
            chunks.append(tuple(chunk[name] for name in CHUNK_COLUMNS))
            stands = project.pk in large
            chunk_rows.append(
                (new_id(), project.pk, chunk["id"], get_static_embedder().name, vector, stands)
            )
    Session.objects.bulk_create(sessions)
    copy("memory_chunk", CHUNK_COLUMNS, chunks)
    copy("memory_vector", VECTOR, chunk_rows)


def halfvecs(vectors: NDArray[np.float32]) -> list[bytes]:
    """The vectors as pgvector takes them in a binary COPY."""
    head = struct.pack(">HH", vectors.shape[1], 0)
    return [head + row.tobytes() for row in vectors.astype(">f2")]


def copy(table: str, columns: dict[str, str], rows: list[tuple]) -> None:
    with connection.cursor() as cursor:
        # Nobody else is here: what refers to what need not be looked up a million times.
        cursor.execute("SET session_replication_role = replica")
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(statement) as stream:
            stream.set_types(["int4" if kind == "int" else kind for kind in columns.values()])
            for row in rows:
                stream.write_row(row)
        cursor.execute("RESET session_replication_role")


@contextmanager
def without_indexes() -> Iterator[None]:
    """Takes the indexes that no constraint needs away, and makes them again at the end."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            " AND tablename IN ('memory_chunk', 'memory_vector')"
            " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conname = indexname)"
        )
        facts_by_key = dict(cursor.fetchall())
        for name in facts_by_key:
            cursor.execute(f"DROP INDEX {name}")
        yield
        cursor.execute("SET maintenance_work_mem = '2GB'")
        cursor.execute("SET max_parallel_maintenance_workers = 3")
        for statement in facts_by_key.values():
            cursor.execute(statement)
        cursor.execute("RESET maintenance_work_mem")


def distances(chunk_rows: list[bytes], request: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine distance of each vector, as COPY gives it, and each question (columns)."""
    rows = np.stack([np.frombuffer(chunk_row, ">f2", offset=4) for chunk_row in chunk_rows]).astype(
        np.float32
    )
    return 1 - normalise(rows) @ request.T
