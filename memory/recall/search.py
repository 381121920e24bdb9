"""Candidates in SQL: what is near the question in meaning or shares its words, and what stands
around it. Who asks and every filter are conditions of the queries, so that nothing is found that
may not be shown, and a filter never leaves fewer results than there are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.postgresql.base import ServerBindingCursor

from chat import replica
from memory.models.chunks import OF_SESSIONS
from memory.recall import vector_index, words
from memory.recall.embedders.base import Matrix
from memory.recall.words import Term
from projects.models import Project

# Candidates of each kind; each brings its neighbours along.
CANDIDATES = 80
NEIGHBOURS = 3
# What was said, word for word.
SAID = OF_SESSIONS
# A summary is what all members may know, as long as it stands (memory.recall.summaries).
TELLABLE = (
    "EXISTS (SELECT FROM memory_entry e WHERE e.id = c.source AND (e.project_id = %(project)s) "
    "IS TRUE AND e.revision = c.last_seq AND NOT e.withheld "
    "AND e.state NOT IN ('proposed', 'hidden'))"
)
# https://github.com/pgvector/pgvector#iterative-index-scans
ITERATIVE = {"hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": "200"}


@dataclass(frozen=True)
class Scope:
    """Who asks for what. Without `viewer` nobody's own is seen; `shared_only` is what every member
    of the project may see, for answers that all of them read.
    """

    project: Project
    viewer: Any
    shared_only: bool = False
    since: datetime | None = None
    until: datetime | None = None
    session: UUID | None = None
    exclude_session: UUID | None = None
    source_types: Sequence[str] = SAID
    author: Any = None

    @property
    def given(self) -> dict[str, Any]:
        """The parameters of the conditions, and the project among them."""
        return {
            "project": self.project.pk,
            "viewer": self.viewer.pk if self.viewer is not None else None,
            "author": self.author.pk if self.author is not None else None,
            "since": self.since,
            "until": self.until,
            "session": self.session,
            "exclude": self.exclude_session,
            "types": list(self.source_types),
        }

    @property
    def conditions(self) -> str:
        """SQL over `c`, a chunk of the project, and `s`, its session if it has one."""
        return f"({self._visible()}) AND {self.own}"

    @property
    def own(self) -> str:
        """The part of the conditions that asks nothing but the chunk."""
        found = ["c.source_type = ANY(%(types)s)"]
        if self.author is not None:
            # Whoever is not saved has said nothing.
            found.append("c.author_id = %(author)s")
        if self.since is not None:
            found.append("c.occurred_at >= %(since)s")
        if self.until is not None:
            found.append("c.occurred_at < %(until)s")
        if self.session is not None:
            found.append("c.session_id = %(session)s")
        if self.exclude_session is not None:
            found.append("c.session_id IS DISTINCT FROM %(exclude)s")
        return " AND ".join(found)

    def _visible(self) -> str:
        """DESIGN, Privacy: one's own sessions; others' where shared and quoted, as notes are."""
        own = "s.creator_id = %(viewer)s"
        quoted = "s.visibility = 'project'"
        if not self.project.share_raw_turns:
            quoted += f" AND ({own} OR c.author_id = %(viewer)s OR c.source_type = 'note')"
        turn = quoted if self.shared_only else f"{own} OR ({quoted})"
        said = f"s.deleted_at IS NULL AND ({turn})"
        return f"CASE WHEN c.source_type = 'entry' THEN {TELLABLE} ELSE {said} END"


class Found(NamedTuple):
    """A row of the search. `fits` says whether it may be a result, or only stands around one;
    `met` has a bit for each of the terms it holds; `occurred` is in seconds since 1970, since a
    thousand times are slow to read.
    """

    id: UUID
    source_type: str
    source: UUID
    session_id: UUID | None
    first_seq: int
    last_seq: int
    part: int
    role: str
    speaker: str
    occurred: float
    tokens: int
    text: str
    pieces: bytes
    likeness: float | None
    met: int
    fits: bool

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.occurred, UTC)


COLUMNS = (
    "c.id, c.source_type, c.source, c.session_id, c.first_seq, c.last_seq, c.part, c.role, "
    "c.speaker, extract(epoch FROM c.occurred_at)::float8, c.tokens, c.text, c.pieces"
)
# By what a candidate is told to the search for what stands around it.
NAMES = "source_type, source, first_seq, part"
PLACE = "c.source_type, c.source, c.first_seq, c.part"

# What is found is looked up by its id. That it is of the project stands in `IS TRUE` beside it: as
# a plain condition, a planner without statistics may go through all of the project's rows for each.
# All vectors are put in order first, and only the nearest looked up, until enough may be shown:
# `OFFSET 0` keeps the planner from looking up each of them before.
_COMPARED = """
    SELECT {place}, v.distance FROM (
        SELECT chunk_id, embedding <=> %(vector)s::halfvec AS distance FROM memory_vector
        WHERE project_id = %(project)s AND embedder = %(embedder)s {which}
        ORDER BY distance OFFSET 0
    ) v
    JOIN memory_chunk c ON c.id = v.chunk_id AND (c.project_id = %(project)s) IS TRUE
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE {conditions} ORDER BY v.distance LIMIT {candidates}
"""
_EXACT = f"SELECT {NAMES} FROM ({_COMPARED.replace('{which}', '')}) near"
# What is in the embedder's index, and beside it what is not yet. With its dimensions and the
# embedder as written, so that the index can serve it.
_INDEXED = f"""
    SELECT {NAMES} FROM ((
        SELECT {{place}}, v.embedding::halfvec({{dimensions}})
            <=> %(vector)s::halfvec({{dimensions}}) AS distance
        FROM memory_vector v
        JOIN memory_chunk c ON c.id = v.chunk_id AND (c.project_id = %(project)s) IS TRUE
        LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
        WHERE v.project_id = %(project)s AND v.embedder = %(embedder)s AND v.indexed
            AND {{conditions}}
        ORDER BY distance LIMIT {{candidates}}
    ) UNION ALL ({_COMPARED.replace("{which}", "AND NOT indexed")})) near
    ORDER BY distance LIMIT {{candidates}}
"""
# By their places in the table (ctid), which hold good within a statement: by their ids, all rows
# would be looked up a second time. And each conversation once, not for each of its rows; and the
# words of a chunk, which may lie elsewhere, once (`held`), not for each that is asked for.
_AROUND = """
    WITH hearts AS MATERIALIZED (({lexical}) UNION ({semantic})),
    talk AS MATERIALIZED (
        SELECT s.id, s.creator_id, s.visibility, s.deleted_at FROM chat_session s
        WHERE s.id IN (SELECT source FROM hearts) AND (s.project_id = %(project)s) IS TRUE
    )
    SELECT {columns}, 1 - (v.embedding <=> %(vector)s::halfvec), {met}, ({conditions}) IS TRUE
    FROM (
        SELECT DISTINCT beside.ctid FROM hearts heart
        CROSS JOIN LATERAL (
            (SELECT o.ctid FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = heart.source_type AND o.source = heart.source
                AND (o.first_seq, o.part) <= (heart.first_seq, heart.part)
                ORDER BY o.first_seq DESC, o.part DESC LIMIT {neighbours} + 1)
            UNION ALL
            (SELECT o.ctid FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = heart.source_type AND o.source = heart.source
                AND (o.first_seq, o.part) > (heart.first_seq, heart.part)
                ORDER BY o.first_seq, o.part LIMIT {neighbours})
        ) beside
    ) near
    JOIN memory_chunk c ON c.ctid = near.ctid AND (c.project_id = %(project)s) IS TRUE
    CROSS JOIN LATERAL (SELECT c.terms || '{{}}' AS terms OFFSET 0) held
    LEFT JOIN talk s ON s.id = c.session_id
    LEFT JOIN memory_vector v ON v.project_id = %(project)s AND v.embedder = %(embedder)s
        AND v.chunk_id = c.id
    ORDER BY c.source, c.first_seq, c.part
"""
_NOTHING = f"SELECT {NAMES} FROM memory_chunk WHERE project_id = %(project)s AND false"


def candidates(
    scope: Scope, asked: Sequence[Term], size: int, embedder: str, vector: Matrix | None
) -> list[Found]:
    """What may answer the question, and what stands around it, by source and place in it.

    `size` is about how many chunks the project has. Without a vector, words alone find.
    """
    indexed = vector is not None and size > vector_index.EXACT
    lexical, weights = words.sharing(asked)
    semantic = ""
    if vector is not None:
        semantic = (_INDEXED if indexed else _EXACT).replace("{dimensions}", str(len(vector)))
    fill = {
        "conditions": scope.conditions,
        "own": scope.own,
        "place": PLACE,
        "candidates": CANDIDATES,
        "neighbours": NEIGHBOURS,
        "columns": COLUMNS,
        "met": words.met(asked),
    }
    query = _AROUND.format(
        **fill,
        lexical=(lexical or _NOTHING).format(**fill),
        semantic=(semantic or _NOTHING).format(**fill),
    )
    given = scope.given | weights
    given |= {
        "embedder": embedder,
        "vector": literal(vector) if vector is not None else None,
    }

    def ask(database: Any) -> list[Found]:
        with _tuned(database) if indexed else nullcontext(), _cursor(database) as cursor:
            cursor.execute(query, given)
            return list(map(Found._make, cursor.fetchall()))

    found, copied = replica.ask(ask)
    return _standing(scope, found) if copied else found


def _standing(scope: Scope, found: Sequence[Found]) -> list[Found]:
    """What the replica found as the primary has it: what went meanwhile, or may be seen no more,
    is neither told nor weighed.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS}, ({scope.conditions}) IS TRUE FROM memory_chunk c "
            "LEFT JOIN chat_session s ON s.id = c.session_id AND s.project_id = c.project_id "
            "WHERE c.project_id = %(project)s AND c.id = ANY(%(ids)s)",
            scope.given | {"ids": [one.id for one in found]},
        )
        rows = {row[0]: row for row in cursor.fetchall()}
    return [
        Found._make((*row[:-1], one.likeness, one.met, row[-1]))
        for one in found
        if (row := rows.get(one.id)) is not None
    ]


def recent(scope: Scope, most: int) -> list[Found]:
    """The latest of what may be shown, at most `most`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS}, NULL, 0, true FROM memory_chunk c "
            "LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) "
            f"IS TRUE WHERE c.project_id = %(project)s AND {scope.conditions} "
            "ORDER BY c.occurred_at DESC, c.first_seq DESC, c.part DESC LIMIT %(most)s",
            scope.given | {"most": most},
        )
        return [Found(*row) for row in cursor.fetchall()]


def literal(vector: Matrix) -> str:
    """A vector as pgvector reads it."""
    form = ",".join(["%.5g"] * len(vector))
    return f"[{form % tuple(vector.tolist())}]"


class _AsStored(ServerBindingCursor):
    """Hundreds of rows with bytes and ids in them are read in half the time as they are stored;
    but never from a plan that was made for another question.
    """

    def execute(self, query: Any, given: Any = None) -> Any:
        # The stubs are those of another driver.
        return super().execute(query, given, prepare=False, binary=True)  # type: ignore[misc]


def _cursor(database: Any) -> Any:
    database.ensure_connection()
    made = database.make_debug_cursor if database.queries_logged else database.make_cursor
    return made(_AsStored(database.connection))  # type: ignore[call-arg]


@contextmanager
def _tuned(database: Any) -> Iterator[None]:
    """Lets the vector index go on until it has found enough rows that fulfil the conditions."""
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        settings_ = ", ".join(
            f"set_config('{name}', '{it}', true)" for name, it in ITERATIVE.items()
        )
        cursor.execute(f"SELECT {settings_}")
        yield
