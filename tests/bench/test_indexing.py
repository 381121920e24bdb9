"""Measure indexing against a COPY of the same rows, and for a year of messages."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from chat.importers import import_file
from memory.models import Chunk, Corpus, Vector
from memory.recall import embedders, indexing, vector_index
from memory.recall.chunk_writer import CHUNK_COLUMNS
from projects.models import Project
from projects.services import create_project
from tests.bench import generated_text

pytestmark = [pytest.mark.timeout(3_600), pytest.mark.django_db(transaction=True)]

AT = datetime(2025, 1, 1, tzinfo=UTC)
A_TALK = 50
ROUNDS, MESSAGES = 5, 5_000
A_YEAR = 100_000
VECTOR = ("id", "project_id", "chunk_id", "embedder", "embedding", "indexed")


def export(seed: int, messages: int) -> io.BytesIO:
    """So much talk between two, spread over a year, as JSON lines."""
    minutes = 365 * 24 * 60 / messages
    lines = []
    for talk, texts in enumerate(generated_text.talks(seed, messages, A_TALK)):
        for place, text in enumerate(texts):
            at = AT + timedelta(minutes=minutes * len(lines))
            line = {
                "session": f"s{talk}",
                "role": ("user", "assistant")[place % 2],
                "content": text,
                "created_at": at.isoformat(),
            }
            lines.append(json.dumps(line))
    return io.BytesIO("\n".join(lines).encode())


class Watched:
    """The embedder, with the seconds that it took."""

    def __init__(self, timed) -> None:
        self._real, self._timed = embedders.get(), timed
        self.name, self.dimensions = self._real.name, self._real.dimensions
        self.seconds, self.texts = 0.0, 0

    def documents(self, texts):
        created = []
        self.seconds += self._timed(lambda: created.append(self._real.embed_documents(texts)))
        self.texts += len(texts)
        return created[0]


def copied(table: str, columns: tuple[str, ...], project: Project) -> bytes:
    chosen = f"SELECT {', '.join(columns)} FROM {table} WHERE project_id = '{project.pk}'"
    with connection.cursor() as cursor, cursor.copy(f"COPY ({chosen}) TO STDOUT") as stream:
        return b"".join(stream)


def copy_back(table: str, columns: tuple[str, ...], rows: bytes) -> None:
    into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(into) as stream:
        stream.write(rows)


def test_indexing_is_a_third_as_quick_as_a_copy_of_its_rows(
    owner, timed, compare, report_figures, monkeypatch
):
    embedder = Watched(timed)
    monkeypatch.setattr(embedders, "get", lambda: embedder)
    written, copying = [], []
    for seed in range(ROUNDS):
        project = create_project(owner, name=f"Talk {seed}")
        import_file(project, owner, "talk.jsonl", export(seed, MESSAGES), "jsonl")
        before = embedder.seconds
        whole = timed(indexing.catch_up)
        written.append(whole - (embedder.seconds - before))
        chunks = copied("memory_chunk", tuple(CHUNK_COLUMNS), project)
        vectors = copied("memory_vector", VECTOR, project)
        Chunk.objects.filter(project=project).delete()

        def both(chunks: bytes = chunks, vectors: bytes = vectors) -> None:
            copy_back("memory_chunk", tuple(CHUNK_COLUMNS), chunks)
            copy_back("memory_vector", VECTOR, vectors)

        copying.append(timed(both))
    assert embedder.texts == Vector.objects.count() == ROUNDS * MESSAGES
    report_figures("embedding", embedder.texts / embedder.seconds, unit="texts a second")
    label = f"{MESSAGES:,} chunks: a COPY of the rows, indexing without embedding"
    assert compare(label, copying, written, 1 / 0.3) <= 1 / 0.3


def test_a_year_of_talk_is_imported_and_indexed_in_three_minutes(owner, timed, report_figures):
    project = create_project(owner, name="A year")
    file = export(99, A_YEAR)
    imported = timed(lambda: import_file(project, owner, "year.jsonl", file, "jsonl"))
    indexed = timed(indexing.catch_up)
    assert Corpus.objects.get(pk=project.pk).chunks == A_YEAR
    filled = timed(lambda: vector_index.add_all(embedders.get()))
    assert not vector_index.projects_behind(embedders.get())
    report_figures(
        "a year of talk: imported, indexed, its vectors' index built",
        imported,
        indexed,
        filled,
        unit="s",
    )
    assert imported + indexed + filled < 180
