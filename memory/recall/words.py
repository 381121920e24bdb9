"""The words of a question as full text search sees them, and the SQL for what shares them.

The conditions on what is found are the caller's: `{own}` over the chunk `c` alone, `{conditions}`
over `c` and its session `s`; `{place}` is what is told of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from projects.models import Project

MOST_TERMS = 40
# Rows that words may find: beyond it the commonest words are left to the vectors.
MOST_MATCHES = 1_000


@dataclass(frozen=True)
class Term:
    """A word of the question: as full text search sees it, its hash, and in how many chunks of
    the project it stands, about.
    """

    word: str
    hash: int
    chunks: int
    idf: float


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


# The words are weighed first, and only the best rows looked up, until enough may be shown:
# `OFFSET 0` keeps the planner from looking up each of them before. A hash holds the project
# already; `IS TRUE` keeps the planner from gathering all of the project's rows beside.
_SHARING = """
    SELECT {place} FROM (
        SELECT c.id, sum(asked.weight) AS weight
        FROM unnest(%(hashes)s::bigint[], %(weights)s::float8[]) asked (hash, weight)
        JOIN memory_chunk c ON c.terms @> ARRAY[asked.hash]
        WHERE (c.project_id = %(project)s) IS TRUE AND {own}
        GROUP BY c.id ORDER BY weight DESC, c.id DESC OFFSET 0
    ) told
    JOIN memory_chunk c ON c.id = told.id AND (c.project_id = %(project)s) IS TRUE
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE {conditions} ORDER BY told.weight DESC, told.id DESC LIMIT {candidates}
"""


def sharing(asked: Sequence[Term]) -> tuple[str, dict[str, Any]]:
    """SQL for the rows that share the words which tell the most, and its parameters; empty if all
    words are too common.
    """
    sought = affordable(asked)
    given = {"hashes": [term.hash for term in sought], "weights": [term.idf for term in sought]}
    return _SHARING if sought else "", given


def affordable(asked: Sequence[Term]) -> list[Term]:
    """The rarest terms, as long as they find no more than MOST_MATCHES rows together."""
    left = MOST_MATCHES
    kept = []
    for term in asked:
        left -= term.chunks
        if left < 0:
            break
        kept.append(term)
    return kept


def met(asked: Sequence[Term]) -> str:
    """SQL for a number with a bit for each of the terms that are among `held.terms`."""
    bits = (
        f"CASE WHEN {term.hash} = ANY(held.terms) THEN {1 << place}::bigint ELSE 0 END"
        for place, term in enumerate(asked)
    )
    return " | ".join(bits) or "0"
