"""Full-text search: the terms of a query, statistics of a project's terms, and the SQL that finds
the chunks with the most significant terms.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from memory.models import Chunk, Corpus
from projects.core.database import fetch
from projects.models import Project, in_project

MAX_TERMS = 40
# Prepared searches have places for 8 or 16 terms. There are only these two sizes, because each
# takes half a megabyte per connection. Of 786 LoCoMo questions, 96 % have at most 8 terms, all at
# most 16.
PREPARED_TERMS_STEP = 8
MAX_PREPARED_TERMS = 16
# The maximum number of rows that the terms of a query match in total. The rarest terms are searched
# for. The common terms that would exceed this number are left out: vector search finds their rows.
MAX_MATCHES = 1_000
# A project's statistics are recounted after RECOUNT_CHANGES changed chunks, or in a large project
# after a change of this share of its chunks.
RECOUNT_CHANGES = 50
RECOUNT_SHARE = 0.25
# The number of projects that one run recounts.
MAX_RECOUNTS = 1_000
# Terms in a smaller share of the chunks are rare enough to be searched for without a count.
MIN_COUNTED_SHARE = 0.0005


@dataclass(frozen=True)
class Term:
    """A normalised word of a query, its hash, and the approximate number of chunks with it."""

    word: str
    hash: int
    chunks: int
    idf: float


_TERMS = """
    SELECT query.word, query.hash,
        coalesce(corpus.counts[array_position(corpus.terms, query.hash)], corpus.floor / 2, 0),
        coalesce(corpus.chunks, 0)
    FROM (
        SELECT word, hashtextextended(word, uuid_hash_extended(%(project)s, 0)) AS hash
        FROM unnest(tsvector_to_array(to_tsvector(%(language)s::regconfig, %(query)s))) word
    ) query
    LEFT JOIN memory_corpus corpus ON corpus.project_id = %(project)s
    ORDER BY 3, 1
    LIMIT %(limit)s
"""


def query_terms(project: Project, query: str) -> tuple[list[Term], int]:
    """Return the terms of `query`, rarest first, and about how many chunks the project has."""
    parameters: dict[str, Any] = {
        "project": project.pk,
        "language": project.search_language_name,
        "query": query,
        "limit": MAX_TERMS,
    }
    rows = fetch(_TERMS, parameters)
    size = rows[0][3] if rows else 0
    return [Term(word, hash, count, idf(count, size)) for word, hash, count, _ in rows], size


def idf(count: int, size: int) -> float:
    """Return the inverse document frequency of a term that `count` of `size` chunks contain.

    BM25's formula (https://doi.org/10.1561/1500000019), with 1 added inside the logarithm so that
    no weight is negative.
    """
    return math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5))


# The inner query ranks all matches by weight. The outer query looks up chunks and sessions, best
# first, until enough meet {conditions}. Without `OFFSET 0`, the planner might look up all matches
# before it ranks them. The hashes differ between projects, so the condition on the project is not
# needed to find the rows: with `IS TRUE`, the planner does not scan all rows of the project for it.
_LEXICAL = """
    SELECT {columns} FROM (
        SELECT c.id, sum(term.weight) AS weight
        FROM unnest(%(hashes)s::bigint[], %(weights)s::float8[]) term (hash, weight)
        JOIN memory_chunk c ON c.terms @> ARRAY[term.hash]
        WHERE (c.project_id = %(project)s) IS TRUE AND {chunk_conditions}
        GROUP BY c.id ORDER BY weight DESC, c.id DESC OFFSET 0
    ) match
    JOIN memory_chunk c ON c.id = match.id AND (c.project_id = %(project)s) IS TRUE
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE {conditions} ORDER BY match.weight DESC, match.id DESC LIMIT {max_candidates}
"""


def lexical_query(terms: Sequence[Term]) -> tuple[str, dict[str, Any]]:
    """Return SQL that finds the chunks with the rarest terms, and its parameters. These terms match
    at most MAX_MATCHES rows in total.

    The SQL is empty if all terms are too common. The caller must fill in `{columns}`,
    `{chunk_conditions}` about the chunk `c`, `{conditions}` about `c` and its session `s`, and
    `{max_candidates}`.
    """
    matches = accumulate(term.chunks for term in terms)
    selected = [term for term, total in zip(terms, matches, strict=True) if total <= MAX_MATCHES]
    parameters = {
        "hashes": [term.hash for term in selected],
        "weights": [term.idf for term in selected],
    }
    return _LEXICAL if selected else "", parameters


def matched_terms(terms: Sequence[Term]) -> tuple[str, dict[str, list[int]]]:
    """Return SQL for a bit mask of the terms in `chunk_terms.hashes`, and its parameters.

    The SQL has places for more terms. Queries with different numbers of terms therefore use the
    same statement, which is planned only once.
    """
    step = PREPARED_TERMS_STEP
    bits = (
        f"CASE WHEN (%(terms)s::bigint[])[{index + 1}] = ANY(chunk_terms.hashes) "
        f"THEN {1 << index}::bigint ELSE 0 END"
        for index in range(max(-(-len(terms) // step) * step, step))
    )
    return " | ".join(bits), {"terms": [term.hash for term in terms]}


def record_changes(*changed: Iterable[Chunk]) -> None:
    """Add the numbers of written or deleted chunks to the change counts of their projects."""
    changes = Counter(chunk.project_id for chunks in changed for chunk in chunks)
    for project_id, count in sorted(changes.items()):
        rows = Corpus.objects.filter(pk=project_id)
        if not rows.update(changes=F("changes") + count):
            Corpus.objects.bulk_create(
                [Corpus(project_id=project_id, changes=count)], ignore_conflicts=True
            )


def recount_due(project: Project | None = None) -> int:
    """Recount the terms of projects with enough changes. Return the number of these projects."""
    changed = Corpus.objects.filter(changes__gte=RECOUNT_CHANGES).filter(
        Q(changes__gte=F("chunks") * RECOUNT_SHARE)
    )
    rows = changed | Corpus.objects.filter(changes__gt=0, chunks__lt=RECOUNT_CHANGES)
    due = list(rows.filter(in_project(project)).values_list("pk", flat=True)[:MAX_RECOUNTS])
    return sum(recount(project_id) for project_id in due)


_RECOUNT = """
    WITH total AS (SELECT count(*) AS chunks FROM memory_chunk WHERE project_id = %(project)s),
    counted AS (
        SELECT term, count(*) AS chunks
        FROM memory_chunk, unnest(terms) term
        WHERE project_id = %(project)s
        GROUP BY term
        HAVING count(*) >= greatest(2, %(share)s * (SELECT chunks FROM total))
    )
    UPDATE memory_corpus SET
        chunks = (SELECT chunks FROM total),
        floor = greatest(2, %(share)s * (SELECT chunks FROM total)),
        terms = (SELECT coalesce(array_agg(term ORDER BY term), '{}') FROM counted),
        counts = (SELECT coalesce(array_agg(chunks ORDER BY term), '{}') FROM counted),
        changes = changes - %(changes)s, counted_at = now()
    WHERE project_id = %(project)s
"""


@transaction.atomic
def recount(project_id) -> bool:
    """Count the chunks that contain each term. Return False if another process is counting."""
    corpus = Corpus.objects.filter(pk=project_id).select_for_update(skip_locked=True).first()
    if corpus is None:
        return False
    fetch(_RECOUNT, {"project": project_id, "share": MIN_COUNTED_SHARE, "changes": corpus.changes})
    return True
