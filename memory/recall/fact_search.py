"""Search for facts by meaning and by word.

Facts are ranked by vectors of a sentence transformer (docs/recall.md), because questions often
share no word with the fact that answers them. Conditions on facts are passed as a queryset, and
become part of the SQL.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import starmap
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from chat.providers.booking import Payer
from memory.models import Fact
from memory.models.facts import FactQuerySet
from memory.recall import embedders, fulltext, query_parsing, search
from memory.recall.fulltext import Term
from memory.recall.search import RecallResult, RecallScope
from projects.core.database import fetch
from projects.models import Project

# The maximum number of facts found by vectors, and of facts found by words.
MAX_FACTS = 100
# The part of the score by meaning is SIMILARITY_WEIGHT × similarity + SIMILARITY_OFFSET. The
# weight was fitted on half of the questions in tests/memory/data/fact_questions.txt. The offset
# makes scores comparable with those of excerpts.
SIMILARITY_WEIGHT = 24.0
SIMILARITY_OFFSET = 1.3
# The weight of the share of the question's words that the fact contains.
WORDS_WEIGHT = 4.0

# The time comes from the fact: its start may change without a change of the text.
COLUMNS = search.COLUMNS.replace("c.occurred_at", "f.valid_from")
# Search operators: excluded words, phrases and alternatives.
_OPERATOR = re.compile(r"(?:^|\s)-\w|\"|\bOR\b")
# The minimum score of a relevant fact, on the scale of memory.recall.ranking.
MIN_SCORE = 8.5
# `{facts}` selects the id of the fact of chunk `c` if this fact meets all conditions. `OFFSET 0`
# makes the planner sort the facts before it checks the conditions of each.
_SEARCH = """
    SELECT {columns}, 1 - (v.embedding <=> %(vector)s::halfvec), {matched}, true
    FROM (({lexical}) UNION ({semantic})) near
    JOIN memory_chunk c ON c.id = near.id AND (c.project_id = %(project)s) IS TRUE
    JOIN memory_fact f ON f.id = c.source AND (f.project_id = %(project)s) IS TRUE
    CROSS JOIN LATERAL (SELECT c.terms || '{{}}' AS hashes OFFSET 0) chunk_terms
    LEFT JOIN memory_vector v ON v.chunk_id = c.id
        AND (v.project_id = %(project)s AND v.embedder = %(embedder)s) IS TRUE
"""
_SEMANTIC = """
    SELECT c.id FROM (
        SELECT c.id, c.source, c.last_seq, v.embedding <=> %(vector)s::halfvec AS distance
        FROM memory_chunk c
        JOIN memory_vector v ON v.chunk_id = c.id
            AND (v.project_id = %(project)s AND v.embedder = %(embedder)s) IS TRUE
        WHERE c.project_id = %(project)s AND c.source_type = 'fact'
        ORDER BY distance OFFSET 0
    ) c WHERE (SELECT true FROM ({facts} OFFSET 0) fact) ORDER BY c.distance LIMIT {limit}
"""
_LEXICAL = """
    SELECT c.id FROM (
        SELECT c.id, c.source, c.last_seq, sum(term.weight) AS weight
        FROM unnest(%(hashes)s::bigint[], %(weights)s::float8[]) term (hash, weight)
        JOIN memory_chunk c ON c.terms @> ARRAY[term.hash]
        WHERE (c.project_id = %(project)s) IS TRUE AND c.source_type = 'fact'
        GROUP BY c.id ORDER BY weight DESC, c.id DESC OFFSET 0
    ) c WHERE (SELECT true FROM ({facts} OFFSET 0) fact)
    ORDER BY c.weight DESC, c.id DESC LIMIT {limit}
"""
_NO_ROWS = "SELECT id FROM memory_chunk WHERE project_id = %(project)s AND false"
_LATEST = f"""
    SELECT {COLUMNS}, NULL, 0, true FROM memory_chunk c
    JOIN memory_fact f ON f.id = c.source AND f.project_id = c.project_id
    WHERE c.project_id = %s AND c.source_type = 'fact' AND c.source = ANY(%s)
"""


# Verbs in the past tense, and words that ask about the past, in English and German.
_PAST = re.compile(
    r"\b(?:was|were|did|had|before|previous|previously|former|formerly|earlier|ago|once|originally"
    r"|first|last|history|\w{3,30}ed"
    r"|war|waren|wurden?|hatten?|vor|vorher|zuvor|früher\w{0,2}|vorige\w?|ehemal\w{1,4}|damal\w{1,4}"
    r"|bisher\w{0,4}|bislang|ursprünglich\w{0,2}|anfangs|zuerst|erste\w?|letzte\w?"
    r"|vergangene\w?)\b",
    re.IGNORECASE,
)
# SQL, and the values of its parameters.
Condition = tuple[str, Sequence[Any]]


def visible_facts(scope: RecallScope, moment: datetime) -> FactQuerySet:
    """Return the facts in the scope that are valid at `moment`.

    Without a viewer, or with `shared_only`, personal facts are left out. Conditions on sessions and
    authors match no fact.
    """
    viewer = None if scope.shared_only else scope.viewer
    facts = about(scope.project.pk, viewer.pk if viewer else None).valid_at(moment)
    if scope.session is not None or scope.author is not None or scope.speaker:
        return facts.none()
    return begun_within(scope, facts)


def begun_within(scope: RecallScope, facts: FactQuerySet) -> FactQuerySet:
    """Return the facts that began in the time of `scope`."""
    if scope.since is not None:
        facts = facts.filter(valid_from__gte=scope.since)
    return facts.filter(valid_from__lt=scope.until) if scope.until is not None else facts


def about(project: UUID, user: int | None) -> FactQuerySet:
    """Return live facts about the project and about `user`, with their ends of validity."""
    return Fact.objects.filter(Q(user=None) | Q(user=user), project=project).with_validity()


def asks_for_past(query: str) -> bool:
    """Return whether a question asks about the past or names a date: ended facts may answer it."""
    return bool(_PAST.search(query)) or any(query_parsing.find_dates(query))


def of_chunk(facts: FactQuerySet) -> QuerySet:
    """Return the query for `{facts}`: it selects the fact of chunk `c` if it is in `facts`."""
    chunk = {"pk": RawSQL("c.source", ()), "version": RawSQL("c.last_seq", ())}
    return facts.filter(**chunk).order_by().values_list("pk")


def search_facts(
    project: Project, facts: FactQuerySet, query: str, payer: Payer
) -> list[RecallResult]:
    """Return the facts in `facts` that answer `query`, best first. All must belong to `project`."""
    try:
        condition = of_chunk(facts).query.sql_with_params()
    except EmptyResultSet:
        return []
    return search_condition(project, condition, query, payer)


def relevant_facts(
    project: Project, facts: FactQuerySet, query: str, limit: int, payer: Payer
) -> list[Fact]:
    """Return facts with a relevant meaning, best first, followed by facts that only contain words
    of `query`. A query with search operators is searched by word only.
    """
    ids = []
    if not _OPERATOR.search(query):
        results = search_facts(project, facts, query, payer)
        ids = [result.source for result in results if result.score >= MIN_SCORE][:limit]
    by_words = facts.matching(query).newest_first()
    ids += by_words.exclude(pk__in=ids).values_list("pk", flat=True)[: limit - len(ids)]
    rows = facts.in_bulk(ids)
    return [rows[pk] for pk in ids if pk in rows]


def search_condition(
    project: Project, condition: Condition, query: str, payer: Payer
) -> list[RecallResult]:
    """Return the facts that meet `condition`, a prepared `of_chunk` query, and answer `query`."""
    terms, _size = fulltext.query_terms(project, query)
    embedder = embedders.get_for_facts()
    vector = embedders.query_vector(embedder, project.pk, payer, query)
    lexical, weights = fulltext.lexical_query(terms)
    matched, hashes = fulltext.matched_terms(terms)
    sql, values = condition
    parts = {"facts": sql % tuple(f"%(fact{n})s" for n in range(len(values))), "limit": MAX_FACTS}
    statement = _SEARCH.format(
        columns=COLUMNS,
        matched=matched,
        lexical=(_LEXICAL if lexical else _NO_ROWS).format(**parts),
        semantic=(_SEMANTIC if vector is not None else _NO_ROWS).format(**parts),
    )
    parameters: dict[str, Any] = {f"fact{n}": value for n, value in enumerate(values)}
    parameters |= weights | hashes | {"project": project.pk, "embedder": embedder.name}
    parameters["vector"] = search.vector_literal(vector) if vector is not None else None
    results = [_scored(RecallResult(*row), terms) for row in fetch(statement, parameters)]
    return sorted(results, key=lambda result: (-result.score, -result.occurred))


def _scored(result: RecallResult, terms: Sequence[Term]) -> RecallResult:
    """Return the result with its score and the parts of the score."""
    total = sum(term.idf for term in terms) or 1.0
    matched = sum(term.idf for n, term in enumerate(terms) if result.matched >> n & 1)
    signals = {
        "likeness": round(SIMILARITY_WEIGHT * (result.similarity or 0.0) + SIMILARITY_OFFSET, 3),
        "words": round(WORDS_WEIGHT * matched / total, 3),
    }
    return result._replace(score=round(sum(signals.values()), 4), signals=signals)


def latest_facts(project: Project, facts: FactQuerySet, limit: int) -> list[RecallResult]:
    """Return the facts with the latest start."""
    ids = list(facts.newest_first().values_list("pk", flat=True)[:limit])
    results = starmap(RecallResult, fetch(_LATEST, [project.pk, ids]))
    rows = {result.source: result for result in results}
    return [rows[pk] for pk in ids if pk in rows]
