"""A database as version 0.1 left it, with years of entries, and what processes of 0.1 do to it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memory.layers.periods import Granularity, ancestor_key
from projects.core import token_counting

# The last migrations of 0.1; those that they depend on are applied too.
MIGRATIONS = [
    ("projects", "0002_unlogged"),
    ("chat", "0002_no_samples"),
    ("memory", "0003_recall"),
    ("config", "0002_schedule"),
]
END = datetime(2026, 11, 22, 12, tzinfo=UTC)
TALKS_A_DAY = 3
MODEL = "openai-chat:a-model"
HEADS = (
    "UPDATE chat_session session SET head_id = message.id FROM chat_message message"
    " WHERE message.session_id = session.id AND message.seq = session.last_seq"
)


def migrate() -> Any:
    """Make the tables of 0.1 in an empty database; return its models."""
    executor = MigrationExecutor(connection)
    executor.migrate(MIGRATIONS)
    return executor.loader.project_state(MIGRATIONS).apps


def message_text(talk: int, place: int) -> str:
    """What the message at a place of a talk says; no two say the same."""
    topics = ("cutover", "invoice", "rehearsal", "migration", "interview", "harvest", "audit")
    topic = topics[(talk + place) % len(topics)]
    return (
        f"We decided that the {topic} {talk}-{place} moves to room {talk % 97}{place}"
        f" and costs {100 + talk * 7 % 899} euros."
    )


class Builder:
    """Fills a project of 0.1 with talks before END, their entries and digests."""

    def __init__(self, apps: Any, number: int, budget: int) -> None:
        self.models = {
            name: apps.get_model(app, name)
            for app, names in {
                "projects": ("Project",),
                "chat": ("Session", "Message"),
                "memory": ("Entry", "Cursor", "Ladder"),
            }.items()
            for name in names
        }
        self.project = self.models["Project"].objects.create(
            name=f"Old {number}", slug=f"old-{number}", bank_max_tokens=budget
        )
        self.digests: dict[tuple[Granularity, str], Any] = {}

    def fill(self, talks: int) -> None:
        rows: dict[str, list[Any]] = {
            name: [] for name in ("Session", "Message", "Entry", "Cursor")
        }
        for number in range(talks):
            at = END - timedelta(days=2 + number // TALKS_A_DAY, minutes=number % TALKS_A_DAY)
            self._talk(number, at, rows)
        for digest in self.digests.values():
            digest.summary = "\n".join(digest.texts[:4])
            digest.tokens = token_counting.count(digest.summary)
            digest.parent_id = digest.above
        layers = list(Granularity)
        oldest_first = sorted(
            self.digests.values(), key=lambda it: -layers.index(Granularity(it.granularity))
        )
        self.models["Session"].objects.bulk_create(rows["Session"])
        self.models["Message"].objects.bulk_create(rows["Message"])
        with connection.cursor() as cursor:
            cursor.execute(f"{HEADS} AND session.project_id = %s", [self.project.pk])
        self.models["Entry"].objects.bulk_create(oldest_first)
        self.models["Entry"].objects.bulk_create(rows["Entry"])
        self.models["Cursor"].objects.bulk_create(rows["Cursor"])
        self.models["Ladder"].objects.create(project=self.project)

    def _talk(self, number: int, at: datetime, rows: dict[str, list[Any]]) -> None:
        session = self.models["Session"](
            project=self.project,
            title=f"Talk {number}",
            created_at=at,
            last_activity_at=at,
            last_seq=2,
            version=2,
        )
        messages = [
            self.models["Message"](
                project=self.project,
                session=session,
                seq=place,
                role="user",
                author_name=("Ana", "Ben")[place % 2],
                text=message_text(number, place),
                tokens=20,
                created_at=at,
            )
            for place in (1, 2)
        ]
        messages[1].parent_id = messages[0].pk
        by_model = number % 4 == 3
        texts = [
            f"- {'They' if by_model else message.author_name}: “{message.text}”"
            for message in messages
        ]
        if by_model:
            texts = [text.replace("“", "").replace("”", "") for text in texts]
        day = at.date().isoformat()
        entry = self._entry(Granularity.CONVERSATION, day, at, "\n".join(texts), by_model)
        entry.session, entry.first_seq, entry.last_seq = session, 1, 2
        entry.parent_id = self._above(Granularity.CONVERSATION, day, at, texts, by_model)
        entry.state = "absorbed" if entry.parent_id else ("live", "faded")[number % 2]
        rows["Session"].append(session)
        rows["Message"] += messages
        rows["Entry"].append(entry)
        rows["Cursor"].append(
            self.models["Cursor"](session=session, project=self.project, summarised_through=2)
        )

    def _above(
        self, layer: Granularity, day: str, at: datetime, texts: list[str], by_model: bool
    ) -> UUID | None:
        """Add the texts to the digest of the layer above; return its id, if it is old enough."""
        above, ages = layer.older, {"day": 3, "week": 14, "month": 45}
        if above is None or END - at < timedelta(days=ages[above.value]):
            return None
        key = ancestor_key(Granularity.CONVERSATION, day, above)
        digest = self.digests.get((above, key))
        if digest is None:
            digest = self._entry(above, key, at, "", by_model)
            digest.texts, digest.message_count = [], 0
            self.digests[above, key] = digest
            digest.above = None
        digest.texts += texts[:1]
        digest.message_count += 2
        digest.first_source_at = min(digest.first_source_at, at)
        digest.last_source_at = max(digest.last_source_at, at)
        digest.above = self._above(above, day, at, texts, by_model)
        digest.state = "absorbed" if digest.above else "live"
        return digest.pk

    def _entry(self, layer: Granularity, key: str, at: datetime, text: str, by_model: bool) -> Any:
        return self.models["Entry"](
            project=self.project,
            granularity=layer.value,
            period_key=key,
            zone="UTC",
            summary=text,
            tokens=token_counting.count(text),
            message_count=2,
            first_source_at=at,
            last_source_at=at,
            sources_hash="0" * 64,
            written_by=MODEL if by_model else "extractive",
        )


class OldProcess:
    """What a process of 0.1 does, in its SQL: it knows none of the later columns."""

    def __init__(self, address: str, projects: Sequence[UUID]) -> None:
        self.connection = psycopg.connect(address, autocommit=True)
        self.projects = projects
        # What it wrote: the texts of entries by id.
        self.edited: dict[UUID, str] = {}
        self.added: dict[UUID, str] = {}

    def turn(self, number: int) -> None:
        """Read a bank, write a message and its entry, and correct an entry of a model."""
        project = self.projects[number % len(self.projects)]
        self.connection.execute(
            "SELECT id, summary, tokens FROM memory_entry WHERE project_id = %s"
            " AND state IN ('live', 'faded') ORDER BY last_source_at DESC",
            [project],
        ).fetchall()
        self._add(project, number)
        row = self.connection.execute(
            "SELECT id, summary FROM memory_entry WHERE project_id = %s AND written_by = %s"
            " AND granularity = 'conversation' ORDER BY id LIMIT 1 OFFSET %s",
            [project, MODEL, number % 50],
        ).fetchone()
        if row is not None and row[0] not in self.edited:
            self.edited[row[0]] = f"{row[1]}\n- Corrected {number} by 0.1."
            self.connection.execute(
                "UPDATE memory_entry SET summary = %s, revision = revision + 1 WHERE id = %s",
                [self.edited[row[0]], row[0]],
            )

    def _add(self, project: UUID, number: int) -> None:
        session, entry, text = uuid4(), uuid4(), message_text(1_000_000 + number, 1)
        at = END - timedelta(minutes=1)
        with self.connection.transaction():
            self.connection.execute(
                "INSERT INTO chat_session (id, project_id, kind, title, title_by_hand, pinned,"
                " visibility, remembered, status, last_seq, version, created_at, last_activity_at)"
                " VALUES (%s, %s, 'chat', 'By 0.1', false, false, 'project', true, 'active',"
                " 1, 1, %s, %s)",
                [session, project, at, at],
            )
            self.connection.execute(
                "INSERT INTO chat_message (id, project_id, session_id, seq, role, author_name,"
                " text, tokens, status, error, version, remembered, model, receipt, tool_calls,"
                " tool_call_id, stop_requested, created_at) VALUES (%s, %s, %s, 1, 'user', 'Ana',"
                " %s, 20, 'complete', '', 1, true, '', '{}', '[]', '', false, %s)",
                [uuid4(), project, session, text, at],
            )
            self.connection.execute(f"{HEADS} AND session.id = %s", [session])
            self.connection.execute(
                "INSERT INTO memory_cursor (session_id, project_id, summarised_through,"
                " unsummarised_messages, unsummarised_tokens, failures, last_error)"
                " VALUES (%s, %s, 1, 0, 0, 0, '')",
                [session, project],
            )
            self.added[entry] = f"- Ana: “{text}”"
            self.connection.execute(
                "INSERT INTO memory_entry (id, project_id, granularity, period_key, zone,"
                " session_id, first_seq, last_seq, summary, tokens, message_count,"
                " first_source_at, last_source_at, state, pinned, withheld, waits_because, note,"
                " losses, particulars, revision, sources_hash, written_by, written_at)"
                " VALUES (%s, %s, 'conversation', %s, 'UTC', %s, 1, 1, %s, 30, 1, %s, %s, 'live',"
                " false, false, '', '', '[]', 0, 1, '', 'extractive', %s)",
                [entry, project, at.date().isoformat(), session, self.added[entry], at, at, at],
            )
