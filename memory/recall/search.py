"""Candidates in SQL: what is near the question in meaning or shares its words, and what stands
around it. Who asks and every filter are conditions of the queries, so that nothing is found that
may not be shown, and a filter never leaves fewer results than there are.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from memory.models.chunks import OF_SESSIONS
from memory.recall import vector_index
from memory.recall.embedders.base import Matrix
from projects.models import Project

# Candidates of each kind; each brings its neighbours along.
CANDIDATES = 80
NEIGHBOURS = 3
# Rows that words may find: beyond it the commonest words are left to the vectors.
MOST_MATCHES = 4_000
MOST_TERMS = 40
# What was said, word for word.
SAID = OF_SESSIONS
# A summary is what all members may know, as long as it stands (memory.recall.summaries).
TELLABLE = (
    "EXISTS (SELECT FROM memory_entry e WHERE e.id = c.source AND e.revision = c.last_seq "
    "AND NOT e.withheld AND e.state NOT IN ('proposed', 'hidden'))"
)
# https://github.com/pgvector/pgvector#iterative-index-scans
ITERATIVE = {"hnsw.iterative_scan": "relaxed_order", "hnsw.ef_search": "400"}


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

    def conditions(self) -> tuple[str, dict[str, Any]]:
        """SQL over `c`, a chunk of the project, and `s`, its session if it has one; and its
        parameters, the project among them.
        """
        found = [f"({self._visible()})"]
        given: dict[str, Any] = {
            "project": self.project.pk,
            "viewer": self.viewer.pk if self.viewer is not None else None,
        }
        wanted = {
            "c.occurred_at >= %(since)s": ("since", self.since),
            "c.occurred_at < %(until)s": ("until", self.until),
            "c.session_id = %(session)s": ("session", self.session),
            "c.session_id IS DISTINCT FROM %(exclude)s": ("exclude", self.exclude_session),
            "c.source_type = ANY(%(types)s)": ("types", list(self.source_types)),
        }
        if self.author is not None:
            # Whoever is not saved has said nothing.
            found.append("c.author_id = %(author)s")
            given["author"] = self.author.pk
        for condition, (name, value) in wanted.items():
            if value is not None:
                found.append(condition)
                given[name] = value
        return " AND ".join(found), given

    def _visible(self) -> str:
        """DESIGN, Privacy: one's own sessions; others' where shared and quoted, as notes are."""
        own = "s.creator_id = %(viewer)s"
        quoted = "s.visibility = 'project'"
        if not self.project.share_raw_turns:
            quoted += f" AND ({own} OR c.author_id = %(viewer)s OR c.source_type = 'note')"
        turn = quoted if self.shared_only else f"{own} OR ({quoted})"
        said = f"s.deleted_at IS NULL AND ({turn})"
        return f"CASE WHEN c.source_type = 'entry' THEN {TELLABLE} ELSE {said} END"


@dataclass(frozen=True)
class Term:
    """A word of the question: as full text search sees it, its hash, and in how many chunks of
    the project it stands, about.
    """

    word: str
    hash: int
    chunks: int
    idf: float


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

_TERMS = """
    SELECT asked.word, asked.hash,
        coalesce(corpus.counts[array_position(corpus.terms, asked.hash)], corpus.floor / 2, 0),
        coalesce(corpus.chunks, 0)
    FROM (
        SELECT word, hashtextextended(word, uuid_hash_extended(%(project)s, 0)) AS hash
        FROM unnest(tsvector_to_array(to_tsvector(%(language)s::regconfig, %(query)s))) word
    ) asked
    LEFT JOIN memory_corpus corpus ON corpus.project_id = %(project)s
    ORDER BY 3, 1
    LIMIT %(most)s
"""


def terms(project: Project, query: str) -> tuple[list[Term], int]:
    """The words of `query`, the rarest first, and how many chunks the project has, about."""
    given: dict[str, Any] = {
        "project": project.pk,
        "language": project.search_language_name,
        "query": query,
        "most": MOST_TERMS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TERMS, given)
        rows = cursor.fetchall()
    size = rows[0][3] if rows else 0
    return [Term(word, hash, count, idf(count, size)) for word, hash, count, _ in rows], size


def idf(count: int, size: int) -> float:
    """How much it tells that a word is met which stands in `count` of `size` chunks.

    https://doi.org/10.1561/1500000019, with one added inside so that no word counts against.
    """
    return math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5))


_LEXICAL = """
    SELECT c.id FROM unnest(%(hashes)s::bigint[], %(weights)s::float8[]) asked (hash, weight)
    JOIN memory_chunk c ON c.terms @> ARRAY[asked.hash]
    LEFT JOIN chat_session s ON s.id = c.session_id
    WHERE c.project_id = %(project)s AND {conditions}
    GROUP BY c.id ORDER BY sum(asked.weight) DESC, c.id DESC LIMIT {candidates}
"""
# All vectors are put in order first, and only the nearest looked up, until enough may be shown:
# `OFFSET 0` keeps the planner from looking up each of them before.
_COMPARED = """
    SELECT c.id, v.distance FROM (
        SELECT chunk_id, embedding <=> %(vector)s::halfvec AS distance FROM memory_vector
        WHERE project_id = %(project)s AND embedder = %(embedder)s {which}
        ORDER BY distance OFFSET 0
    ) v
    JOIN memory_chunk c ON c.id = v.chunk_id
    LEFT JOIN chat_session s ON s.id = c.session_id
    WHERE {conditions} ORDER BY v.distance LIMIT {candidates}
"""
_EXACT = f"SELECT id FROM ({_COMPARED.replace('{which}', '')}) near"
# What is in the embedder's index, and beside it what is not yet. With its dimensions and the
# embedder as written, so that the index can serve it. The chunks are looked up by their ids
# alone: with the project as a condition on both tables, a planner without statistics may go
# through all of the project's chunks for each of its vectors.
_INDEXED = f"""
    SELECT id FROM ((
        SELECT c.id, v.embedding::halfvec({{dimensions}}) <=> %(vector)s::halfvec({{dimensions}})
            AS distance
        FROM memory_vector v
        JOIN memory_chunk c ON c.id = v.chunk_id
        LEFT JOIN chat_session s ON s.id = c.session_id
        WHERE v.project_id = %(project)s AND v.embedder = %(embedder)s AND v.indexed
            AND {{conditions}}
        ORDER BY distance LIMIT {{candidates}}
    ) UNION ALL ({_COMPARED.replace("{which}", "AND NOT indexed")})) near
    ORDER BY distance LIMIT {{candidates}}
"""
_AROUND = """
    WITH hearts (id) AS (({lexical}) UNION ({semantic})),
    around AS (
        SELECT beside.id FROM hearts JOIN memory_chunk heart ON heart.id = hearts.id
        CROSS JOIN LATERAL (
            (SELECT id FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = heart.source_type AND o.source = heart.source
                AND (o.first_seq, o.part) <= (heart.first_seq, heart.part)
                ORDER BY o.first_seq DESC, o.part DESC LIMIT {neighbours} + 1)
            UNION ALL
            (SELECT id FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = heart.source_type AND o.source = heart.source
                AND (o.first_seq, o.part) > (heart.first_seq, heart.part)
                ORDER BY o.first_seq, o.part LIMIT {neighbours})
        ) beside
    )
    SELECT {columns}, 1 - (v.embedding <=> %(vector)s::halfvec), {met}, ({conditions}) IS TRUE
    FROM (SELECT DISTINCT id FROM around) near
    JOIN memory_chunk c ON c.id = near.id
    LEFT JOIN chat_session s ON s.id = c.session_id
    LEFT JOIN memory_vector v ON v.project_id = %(project)s AND v.embedder = %(embedder)s
        AND v.chunk_id = c.id
    ORDER BY c.source, c.first_seq, c.part
"""
_NOTHING = "SELECT NULL::uuid WHERE false"


def candidates(
    scope: Scope, asked: Sequence[Term], size: int, embedder: str, vector: Matrix | None
) -> list[Found]:
    """What may answer the question, and what stands around it, by source and place in it.

    `size` is about how many chunks the project has. Without a vector, words alone find.
    """
    conditions, given = scope.conditions()
    sought = _affordable(asked)
    given |= {
        "hashes": [term.hash for term in sought],
        "weights": [term.idf for term in sought],
        "embedder": embedder,
        "vector": literal(vector) if vector is not None else None,
    }
    indexed = vector is not None and size > vector_index.EXACT
    fill = {"conditions": conditions, "candidates": CANDIDATES}
    lexical = _LEXICAL.format(**fill) if sought else _NOTHING
    semantic = _NOTHING
    if vector is not None:
        semantic = (_INDEXED if indexed else _EXACT).format(**fill, dimensions=len(vector))
    query = _AROUND.format(
        **fill,
        lexical=lexical,
        semantic=semantic,
        neighbours=NEIGHBOURS,
        columns=COLUMNS,
        met=_met(asked),
    )
    with _tuned() if indexed else nullcontext(), connection.cursor() as cursor:
        cursor.execute(query, given)
        return [Found(*row) for row in cursor.fetchall()]


def recent(scope: Scope, most: int) -> list[Found]:
    """The latest of what may be shown, at most `most`."""
    conditions, given = scope.conditions()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS}, NULL, 0, true FROM memory_chunk c "
            "LEFT JOIN chat_session s ON s.id = c.session_id "
            f"WHERE c.project_id = %(project)s AND {conditions} "
            "ORDER BY c.occurred_at DESC, c.first_seq DESC, c.part DESC LIMIT %(most)s",
            given | {"most": most},
        )
        return [Found(*row) for row in cursor.fetchall()]


def literal(vector: Matrix) -> str:
    """A vector as pgvector reads it."""
    form = ",".join(["%.5g"] * len(vector))
    return f"[{form % tuple(vector.tolist())}]"


def _affordable(asked: Sequence[Term]) -> list[Term]:
    """The rarest terms, as long as they find no more than MOST_MATCHES rows together."""
    left = MOST_MATCHES
    kept = []
    for term in asked:
        left -= term.chunks
        if left < 0:
            break
        kept.append(term)
    return kept


def _met(asked: Sequence[Term]) -> str:
    bits = (
        f"CASE WHEN c.terms @> ARRAY[{term.hash}::bigint] THEN {1 << place}::bigint ELSE 0 END"
        for place, term in enumerate(asked)
    )
    return " | ".join(bits) or "0"


@contextmanager
def _tuned() -> Iterator[None]:
    """Lets the vector index go on until it has found enough rows that fulfil the conditions."""
    with transaction.atomic(), connection.cursor() as cursor:
        settings_ = ", ".join(
            f"set_config('{name}', '{it}', true)" for name, it in ITERATIVE.items()
        )
        cursor.execute(f"SELECT {settings_}")
        yield
