"""Reads candidates from the database: chunks that are similar to the query or contain its words,
and the neighbours of these chunks.

All permissions and filters are conditions of the SQL. They apply before the limit of candidates, so
that filters do not reduce the number of results. Neighbours that do not meet the conditions are
read for ranking, but recall never returns them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import starmap
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from chat.providers.booking import Payer
from memory.models.chunks import SESSION_SOURCES, SourceType
from memory.recall import fulltext, vector_index
from memory.recall.embedders.base import Matrix
from memory.recall.fulltext import Term
from projects.core.database import fetch, query_replica, server_cursor
from projects.models import Project

# The maximum number of candidates found by vectors, and of those found by words.
MAX_CANDIDATES = 80
# The maximum number of neighbours on each side of a candidate.
MAX_NEIGHBOURS = 3
# The types of literal text: messages and notes.
TRANSCRIPT_SOURCES = SESSION_SOURCES
# Summaries are visible to all members. `last_seq` of a summary's chunk is a revision of its entry,
# which must be the current one.
VISIBLE_SUMMARY = (
    "EXISTS (SELECT FROM memory_entry e WHERE e.id = c.source AND (e.project_id = %(project)s) "
    "IS TRUE AND e.revision = c.last_seq AND NOT e.withheld "
    "AND e.state NOT IN ('proposed', 'hidden'))"
)
# A file is visible if it belongs to the project, or to a chat for which `{visible}` holds.
VISIBLE_FILE = "c.session_id IS NULL OR (s.deleted_at IS NULL AND ({visible}))"
# The first two: https://github.com/pgvector/pgvector#iterative-index-scans. Each embedder has a
# partial index of its vectors. A plan can use this index only if it is made for the embedder's name
# (`force_custom_plan`).
INDEX_SCAN_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "plan_cache_mode": "force_custom_plan",
}


@dataclass(frozen=True)
class RecallScope:
    """The viewer and the filters of a search.

    Without a `viewer`, no private content is visible. With `shared_only`, the scope is limited to
    what every member may see, for replies that all members read. A message matches if `author`
    wrote it, or if its speaker is `speaker` (a name or a word of a name, ignoring case) or
    `alias_of` (the full name of somebody whom others call `speaker`). `window` is a session and a
    `seq`: the messages of the session from this `seq` on are left out. `valid_at` is the time at
    which facts must be valid; None means now. `revisions` are the versions of files to search in.
    With `files_of`, the id of a chat, all chunks of other chats are left out. The embedding of the
    query is booked on `payer`, by default on the viewer.
    """

    project: Project
    viewer: Any
    shared_only: bool = False
    since: datetime | None = None
    until: datetime | None = None
    session: UUID | None = None
    exclude_session: UUID | None = None
    source_types: Sequence[str] = TRANSCRIPT_SOURCES
    author: Any = None
    speaker: str = ""
    alias_of: str = ""
    window: tuple[UUID, int] | None = None
    valid_at: datetime | None = None
    revisions: Sequence[UUID] | None = None
    files_of: UUID | None = None
    payer: Payer = Payer()

    @property
    def booked_on(self) -> Payer:
        return self.payer if self.viewer is None or any(self.payer) else Payer(self.viewer.pk)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the SQL conditions."""
        return {
            "project": self.project.pk,
            "viewer": self.viewer.pk if self.viewer is not None else None,
            "author": self.author.pk if self.author is not None else None,
            "speaker": self.speaker.lower(),
            "alias_of": self.alias_of,
            "window_session": self.window and self.window[0],
            "window_seq": self.window and self.window[1],
            "since": self.since,
            "until": self.until,
            "session": self.session,
            "exclude": self.exclude_session,
            "types": list(self.source_types),
            "revisions": list(self.revisions or ()),
            "files_of": self.files_of,
        }

    @property
    def conditions(self) -> str:
        """Return SQL conditions about `c`, a chunk of the project, and `s`, its session or NULL."""
        return f"({self.visibility_condition()}) AND {self.chunk_conditions}"

    @property
    def chunk_conditions(self) -> str:
        """Return the SQL conditions that refer only to `c`."""
        conditions = ["c.source_type = ANY(%(types)s)"]
        speakers = []
        if self.author is not None:
            speakers.append("c.author_id = %(author)s")
        if self.speaker:
            speakers.append("lower(c.speaker) = %(speaker)s")
            speakers.append("%(speaker)s = ANY (string_to_array(lower(c.speaker), ' '))")
        if self.alias_of:
            speakers.append("c.speaker = %(alias_of)s")
        if speakers:
            conditions.append(f"({' OR '.join(speakers)})")
        if self.since is not None:
            conditions.append("c.occurred_at >= %(since)s")
        if self.until is not None:
            conditions.append("c.occurred_at < %(until)s")
        if self.session is not None:
            conditions.append("c.session_id = %(session)s")
        if self.window is not None:
            conditions.append(
                "(c.session_id IS DISTINCT FROM %(window_session)s OR c.last_seq < %(window_seq)s)"
            )
        if self.exclude_session is not None:
            conditions.append("c.session_id IS DISTINCT FROM %(exclude)s")
        if self.revisions is not None:
            conditions.append("c.source = ANY(%(revisions)s)")
        if self.files_of is not None:
            conditions.append("(c.session_id IS NULL OR c.session_id = %(files_of)s)")
        return " AND ".join(conditions)

    def visibility_condition(self) -> str:
        """Return SQL for the chunks that the viewer may see:

        - the current texts of entries that are not proposed, hidden or withheld
        - messages and notes of the viewer's own sessions
        - messages and notes of shared sessions. If members may not quote each other, these are only
          notes, the viewer's messages, and messages of the viewer's sessions.
        - files of the project, of the viewer's own sessions and of shared sessions

        Messages, notes and files of deleted sessions are left out. With `shared_only`, those of
        private sessions are left out too.
        """
        own = "s.creator_id = %(viewer)s"
        quotable = "s.visibility = 'project'"
        readable = quotable if self.shared_only else f"{own} OR {quotable}"
        if not self.project.share_raw_turns:
            quotable += f" AND ({own} OR c.author_id = %(viewer)s OR c.source_type = 'note')"
        visible = quotable if self.shared_only else f"{own} OR ({quotable})"
        in_session = f"s.deleted_at IS NULL AND ({visible})"
        cases = f"CASE WHEN c.source_type = 'entry' THEN {VISIBLE_SUMMARY} "
        if SourceType.FILE in self.source_types:
            visible_file = VISIBLE_FILE.format(visible=readable)
            cases += f"WHEN c.source_type = 'file' THEN {visible_file} "
        return f"{cases}ELSE {in_session} END"


class RecallResult(NamedTuple):
    """An excerpt that the search found. Ranking sets `score`, and the parts of the score as
    `signals`.

    `occurred` is in seconds since 1970, because reading a thousand datetimes is slow. `tokens` is
    the length of the excerpt in a prompt, with date and speaker (cl100k_base). `matched` has a bit
    for each matched term. A row with `in_scope` false is only a neighbour, and must not be returned
    to the viewer.
    """

    id: UUID
    source_type: str
    source: UUID
    session: UUID | None
    first_seq: int
    last_seq: int
    part: int
    role: str
    speaker: str
    occurred: float
    tokens: int
    text: str
    pieces: bytes
    similarity: float | None
    matched: int
    in_scope: bool
    score: float = 0.0
    signals: Mapping[str, float] = {}

    @property
    def occurred_at(self) -> datetime:
        return datetime.fromtimestamp(self.occurred, UTC)

    @property
    def source_id(self) -> str:
        """Return the range of messages of the excerpt as `source:first-last`."""
        return f"{self.source}:{self.first_seq}-{self.last_seq}"


# The columns of RecallResult before `similarity`.
COLUMNS = (
    "c.id, c.source_type, c.source, c.session_id, c.first_seq, c.last_seq, c.part, c.role, "
    "c.speaker, extract(epoch FROM c.occurred_at)::float8, c.tokens, c.text, c.pieces"
)
# The columns that identify a candidate, and the columns of its session that decide who may see it.
KEY = "source_type, source, first_seq, part, creator_id, visibility, deleted_at"
CHUNK_KEY = "c.source_type, c.source, c.first_seq, c.part, s.creator_id, s.visibility, s.deleted_at"

# The chunk of a vector and its session are looked up by id. The conditions on their project are
# inside `IS TRUE`, because without statistics a planner might otherwise scan all rows of the
# project for each vector. All vectors are ranked first. Then the nearest chunks are looked up until
# enough are visible: `OFFSET 0` keeps the planner from looking up every chunk first.
_COMPARED = """
    SELECT {columns}, v.distance FROM (
        SELECT chunk_id, embedding <=> %(vector)s::halfvec AS distance FROM memory_vector
        WHERE project_id = %(project)s AND embedder = %(embedder)s {unindexed}
        ORDER BY distance OFFSET 0
    ) v
    JOIN memory_chunk c ON c.id = v.chunk_id AND (c.project_id = %(project)s) IS TRUE
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE {conditions} ORDER BY v.distance LIMIT {max_candidates}
"""
_EXACT = f"SELECT {KEY} FROM ({_COMPARED.replace('{unindexed}', '')}) near"
# Finds vectors that are in the index, and compares those that are not in it yet. The expression
# names the dimensions like the definition of the index; otherwise the index would not be used.
_INDEXED = f"""
    SELECT {KEY} FROM ((
        SELECT {{columns}}, v.embedding::halfvec({{dimensions}})
            <=> %(vector)s::halfvec({{dimensions}}) AS distance
        FROM memory_vector v
        JOIN memory_chunk c ON c.id = v.chunk_id AND (c.project_id = %(project)s) IS TRUE
        LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
        WHERE v.project_id = %(project)s AND v.embedder = %(embedder)s AND v.indexed
            AND {{conditions}}
        ORDER BY distance LIMIT {{max_candidates}}
    ) UNION ALL ({_COMPARED.replace("{unindexed}", "AND NOT indexed")})) near
    ORDER BY distance LIMIT {{max_candidates}}
"""
# Rows are read once, by their position in the table (ctid), which is stable within a statement.
# Sessions are read with the candidates, not for each row, because neighbours are in the same
# session. The terms of a chunk, which may be stored out of line, are read once (`chunk_terms`), not
# once for each term of the query. The vector is found by its chunk; if the project were outside of
# `IS TRUE`, a planner without statistics would read all vectors of the project for each row.
_WITH_NEIGHBOURS = """
    SELECT {all_columns}, 1 - (v.embedding <=> %(vector)s::halfvec), {matched},
        ({conditions}) IS TRUE
    FROM (
        SELECT DISTINCT neighbour.ctid, candidate.creator_id, candidate.visibility,
            candidate.deleted_at
        FROM (({lexical}) UNION ({semantic})) candidate
        CROSS JOIN LATERAL (
            (SELECT o.ctid FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = candidate.source_type AND o.source = candidate.source
                AND (o.first_seq, o.part) <= (candidate.first_seq, candidate.part)
                ORDER BY o.first_seq DESC, o.part DESC LIMIT {max_neighbours} + 1)
            UNION ALL
            (SELECT o.ctid FROM memory_chunk o WHERE o.project_id = %(project)s
                AND o.source_type = candidate.source_type AND o.source = candidate.source
                AND (o.first_seq, o.part) > (candidate.first_seq, candidate.part)
                ORDER BY o.first_seq, o.part LIMIT {max_neighbours})
        ) neighbour
    ) near
    CROSS JOIN LATERAL (SELECT near.creator_id, near.visibility, near.deleted_at) s
    JOIN memory_chunk c ON c.ctid = near.ctid AND (c.project_id = %(project)s) IS TRUE
    CROSS JOIN LATERAL (SELECT c.terms || '{{}}' AS hashes OFFSET 0) chunk_terms
    LEFT JOIN memory_vector v ON v.chunk_id = c.id
        AND (v.project_id = %(project)s AND v.embedder = %(embedder)s) IS TRUE
    ORDER BY c.source, c.first_seq, c.part
"""
_NO_ROWS = (
    f"SELECT {CHUNK_KEY} FROM memory_chunk c JOIN chat_session s USING (project_id) "
    "WHERE project_id = %(project)s AND false"
)


def find_candidates(
    scope: RecallScope, terms: Sequence[Term], size: int, embedder: str, vector: Matrix | None
) -> list[RecallResult]:
    """Return the chunks that may answer the query and their neighbours, ordered by source.

    `size` is the approximate number of chunks in the project. Without a vector, only words are
    matched.
    """
    use_index = vector is not None and size > vector_index.MAX_EXACT_CHUNKS
    # If the index is used, the statement is not prepared: its plan depends on the embedder's name.
    prepare = not use_index and len(terms) <= fulltext.MAX_PREPARED_TERMS
    lexical, weights = fulltext.lexical_query(terms)
    matched, hashes = fulltext.matched_terms(terms)
    semantic = ""
    if vector is not None:
        semantic = (_INDEXED if use_index else _EXACT).replace("{dimensions}", str(len(vector)))
    parts = {
        "conditions": scope.conditions,
        "chunk_conditions": scope.chunk_conditions,
        "columns": CHUNK_KEY,
        "max_candidates": MAX_CANDIDATES,
    }
    query = _WITH_NEIGHBOURS.format(
        all_columns=COLUMNS,
        conditions=scope.conditions,
        max_neighbours=MAX_NEIGHBOURS,
        matched=matched,
        lexical=(lexical or _NO_ROWS).format(**parts),
        semantic=(semantic or _NO_ROWS).format(**parts),
    )
    parameters = scope.parameters | weights | hashes
    parameters |= {
        "embedder": embedder,
        "vector": vector_literal(vector) if vector is not None else None,
    }

    def run_query(database: Any) -> list[RecallResult]:
        settings = _iterative_scan(database) if use_index else nullcontext()
        with settings, server_cursor(database, prepare, binary=True) as cursor:
            cursor.execute(query, parameters)
            return list(starmap(RecallResult, cursor.fetchall()))

    rows, from_replica = query_replica(run_query)
    return _recheck(scope, rows) if from_replica else rows


def _recheck(scope: RecallScope, rows: Sequence[RecallResult]) -> list[RecallResult]:
    """Read rows of a replica again from the primary, and return those that still exist there."""
    current_rows = fetch(
        f"SELECT {COLUMNS}, ({scope.conditions}) IS TRUE FROM memory_chunk c "
        "LEFT JOIN chat_session s ON s.id = c.session_id AND s.project_id = c.project_id "
        "WHERE c.project_id = %(project)s AND c.id = ANY(%(ids)s)",
        scope.parameters | {"ids": [row.id for row in rows]},
    )
    current = {values[0]: values for values in current_rows}
    return [
        RecallResult(*(*values[:-1], row.similarity, row.matched, values[-1]))
        for row in rows
        if (values := current.get(row.id)) is not None
    ]


def find_latest(scope: RecallScope, limit: int) -> list[RecallResult]:
    """Return the latest chunks in the scope, at most `limit`."""
    rows = fetch(
        f"SELECT {COLUMNS}, NULL, 0, true FROM memory_chunk c "
        "LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) "
        f"IS TRUE WHERE c.project_id = %(project)s AND {scope.conditions} "
        "ORDER BY c.occurred_at DESC, c.first_seq DESC, c.part DESC LIMIT %(limit)s",
        scope.parameters | {"limit": limit},
    )
    return list(starmap(RecallResult, rows))


def vector_literal(vector: Matrix) -> str:
    """Return a vector in pgvector's text format."""
    template = ",".join(["%.5g"] * len(vector))
    return f"[{template % tuple(vector.tolist())}]"


@contextmanager
def _iterative_scan(database: Any) -> Iterator[None]:
    """Let a scan of the vector index continue until enough rows meet the conditions."""
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        calls = ", ".join(
            f"set_config('{name}', '{value}', true)" for name, value in INDEX_SCAN_SETTINGS.items()
        )
        cursor.execute(f"SELECT {calls}")
        yield
