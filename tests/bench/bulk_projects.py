"""Projects full of made-up talk, straight into the tables: how they are made is not measured.

The rows are those that indexing would have written, the vectors the built-in embedder's.
"""

import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import islice
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from chat.conversations.messages import draft, post_messages
from chat.conversations.notes import add_note
from chat.models import Call, CallKind, Role, SavedPrompt, Session, Visibility
from memory import blocks
from memory.facts.create import Statement, insert_fact
from memory.files import processing
from memory.files.adding import add_file
from memory.layers import cycle
from memory.models import (
    Corpus,
    EntryStatus,
    File,
    FilePassage,
    FileRevision,
    FileState,
    ReviewReason,
)
from memory.models.entries import CONVERSATION
from memory.recall import fulltext, indexing, vector_index, wordpieces
from memory.recall.chunk_writer import CHUNK_COLUMNS
from memory.recall.embedders.base import normalise
from memory.recall.embedders.static import get_static_embedder
from projects.core.models import new_id
from projects.models import Project
from projects.services import create_project
from tests.bench import generated_text
from tests.torture import daily_talks

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


def fill(owner, sizes: Sequence[int], seed: int, passages: int = 0) -> list[Project]:
    """Projects with so many chunks each. Those that are large stand in the vector index.

    With `passages`, the chunks are of files with so many passages each, in place of talks.
    """
    projects = [Project(name=f"P{new_id()}", slug=f"p{new_id()}") for _ in sizes]
    Project.objects.bulk_create(projects)
    each = passages or A_TALK
    whose = [
        project for project, size in zip(projects, sizes, strict=True) for _ in range(0, size, each)
    ]
    large = {
        project.pk
        for project, size in zip(projects, sizes, strict=True)
        if size > vector_index.MAX_EXACT_CHUNKS
    }
    talks = generated_text.talks(seed, len(whose) * each, each)
    with without_indexes():
        while batch := list(islice(zip(whose, talks, strict=False), BATCH // each)):
            _write(owner, batch, large, is_files=bool(passages))
            whose = whose[len(batch) :]
    Corpus.objects.bulk_create(Corpus(project=project) for project in projects)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for project in projects:
        fulltext.recount(project.pk)
    return projects


def _write(owner, batch: list[tuple[Project, list[str]]], large: set[UUID], is_files: bool) -> None:
    texts = [text for _, talk in batch for text in talk]
    vectors = halfvecs(get_static_embedder().embed_documents(texts))
    packed = iter(zip(texts, wordpieces.pack(texts), vectors, strict=True))
    sessions: list[Session] = []
    revisions: list[FileRevision] = []
    passages: list[FilePassage] = []
    chunks, chunk_rows = [], []
    for project, talk in batch:
        source: Session | FileRevision
        if is_files:
            source = _file(owner, project, len(talk))
            revisions.append(source)
        else:
            source = Session(project=project, creator=owner, last_seq=len(talk))
            sessions.append(source)
        for seq, (text, ids, vector) in enumerate(islice(packed, len(talk)), start=1):
            chunk = {
                "id": new_id(),
                "session_id": None if is_files else source.pk,
                "project_id": project.pk,
                "source_type": "file" if is_files else "turn",
                "source": source.pk,
                "first_seq": seq,
                "part": 0,
                "last_seq": seq,
                "role": "user" if is_files else ("user", "assistant")[seq % 2],
                "author_id": None if is_files else owner.pk,
                "speaker": f"{source.pk}.pdf, p. {seq}" if is_files else owner.username,
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
            if isinstance(source, FileRevision):
                passages.append(
                    FilePassage(
                        id=chunk["id"],
                        project=project,
                        revision=source,
                        number=seq,
                        section=seq,
                        page=seq,
                        label=f"p. {seq}",
                        text=text,
                    )
                )
    Session.objects.bulk_create(sessions)
    File.objects.bulk_create([revision.document for revision in revisions])
    FileRevision.objects.bulk_create(revisions)
    FilePassage.objects.bulk_create(passages)
    copy("memory_chunk", CHUNK_COLUMNS, chunks)
    copy("memory_vector", VECTOR, chunk_rows)


def _file(owner, project: Project, passages: int) -> FileRevision:
    pk = new_id()
    return FileRevision(
        project=project,
        document=File(project=project, name=f"{pk}.pdf", added_by=owner),
        number=1,
        size=len(pk.bytes),
        sha256=pk.hex * 2,
        passage_count=passages,
        indexed_passages=passages,
        state=FileState.READY,
        added_by=owner,
    )


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


# What a team has after three years: an entry for each chat, their digests, and forty of each
# smaller thing.
YEARS, CHATS, TURNS, CHATS_A_CYCLE = 3, 500, 12, 20
LONG_CHAT, LONG_MESSAGE = 60, 300
FACTS, WAITING, OTHERS = 200, 30, 40
CALLS_A_DAY = 8


def three_years(owner, now: datetime) -> Project:
    """A project with the chats, memory, facts and costs of three years before `now`.

    The newest chat ends with a message of 300 lines. `owner` has more projects, all empty.
    """
    chance = random.Random(3)
    for number in range(OTHERS):
        create_project(owner, name=f"Project {number}")
    project = create_project(owner, name="Three years", system_model="extractive")
    step = timedelta(days=365 * YEARS) / CHATS
    for number, talk in enumerate(daily_talks.generate_talks(chance, CHATS - 1, TURNS)):
        at = now - step * (CHATS - number)
        daily_talks.post(project, talk, at)
        if number % CHATS_A_CYCLE == CHATS_A_CYCLE - 1:
            _remember(project, at + timedelta(days=1))
    project.sessions.update(creator=owner)
    _with_small_things(project, owner, now, step)
    _remember(project, now)
    _with_long_message(project, owner, now)
    _with_facts(project, owner, now, chance)
    _with_costs(project, owner, now, chance)
    indexing.catch_up(project)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return project


def _remember(project: Project, now: datetime) -> None:
    while cycle.due(now, project):
        cycle.run(now, project)


def _with_small_things(project: Project, owner, now: datetime, step: timedelta) -> None:
    for number in range(OTHERS):
        text = f"Note {number}: " + " ".join(generated_text.words()[number * 30 :][:30])
        add_note(project, owner, text, now - number * step)
        blocks.put(project, None, f"Text {number}", text[:80], owner)
        SavedPrompt.objects.create(
            project=project, name=f"prompt-{number}", text=text, written_by=owner
        )
        content = BytesIO(f"# File {number}\n\n{text}".encode())
        add_file(project, owner, f"file-{number}.md", content)
    processing.catch_up(120)


def _with_long_message(project: Project, owner, now: datetime) -> None:
    """The newest chat. Its last message has headings, lists, links, tables, formulas and code."""
    lines = []
    for number in range(LONG_MESSAGE // 10):
        lines += [f"## Step {number}", "", f"- **First** of {number}"]
        lines += ["- `second`, with [a link](https://example.org/)", ""]
        lines += ["| a | b |", "| - | - |", f"| {number} | {number * 2} |"]
        lines += ["", f"Then ${number}$."]
    code = [f"value_{number} = compute({number})  # step" for number in range(58)]
    lines[200:260] = ["```python", *code, "```"]
    session = Session.objects.create(
        project=project,
        creator=owner,
        title="The long answer",
        visibility=Visibility.PROJECT,
        created_at=now,
        last_activity_at=now,
    )
    texts = [f"Message {number} of the long chat." for number in range(LONG_CHAT - 1)]
    roles = (Role.USER, Role.ASSISTANT)
    post_messages(
        session,
        [
            draft(text, author=owner, role=roles[place % 2], created_at=now)
            for place, text in enumerate([*texts, "\n".join(lines)])
        ],
    )


def _with_facts(project: Project, owner, now: datetime, chance: random.Random) -> None:
    """Facts of four dozen subjects; the last of them, and as many summaries, wait for review."""
    for number in range(FACTS + WAITING):
        subject = f"{chance.choice(daily_talks.THINGS)} {number % 7}" if number % 20 else "billing"
        since = now - timedelta(days=chance.randrange(1, 365 * YEARS))
        statement = Statement(subject, f"is owned by {number % 3}", f"team {number}", since)
        waits = ReviewReason.PROJECT_RULE if number >= FACTS else ""
        insert_fact(project, statement.normalized(), owner.username, waits, since, by_hand=True)
    newest = project.entries.filter(state=EntryStatus.LIVE, granularity=CONVERSATION)
    waiting = [entry.pk for entry in newest.order_by("pk")[:WAITING]]
    project.entries.filter(pk__in=waiting).update(
        state=EntryStatus.PROPOSED, waits_because=ReviewReason.PROJECT_RULE
    )


def _with_costs(project: Project, owner, now: datetime, chance: random.Random) -> None:
    Call.objects.bulk_create(
        Call(
            project=project,
            user=owner,
            kind=(CallKind.REPLY, CallKind.CONVERSATION)[number % 2],
            model=f"openai-chat:model-{chance.randrange(6)}",
            started_at=now - timedelta(days=number / CALLS_A_DAY),
            duration_ms=900,
            input_tokens=chance.randrange(9_000),
            output_tokens=chance.randrange(900),
            cost=chance.randrange(900) / 1e5,
            outcome="answered",
        )
        for number in range(CALLS_A_DAY * 365 * YEARS)
    )
