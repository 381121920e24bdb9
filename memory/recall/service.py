"""The recall function of pages, API, MCP and prompts, and the selection of its results."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np
from django.utils import timezone
from prometheus_client import Histogram

from chat.models import Role
from chat.prompt import quoting
from memory.models import SourceType
from memory.recall import (
    embedders,
    fact_search,
    fulltext,
    query_parsing,
    ranking,
    search,
    wordpieces,
)
from memory.recall.fulltext import Term
from memory.recall.ranking import EPOCH, CandidateRows, Floats, Ints
from memory.recall.relative_days import find_relative_days
from memory.recall.search import RecallResult, RecallScope
from memory.recall.speakers import resolve_alias
from memory.recall.transcripts import begins_turn
from projects.core.text import storable

RECALL_SECONDS = Histogram(
    "strata_recall_duration_seconds",
    "Time from a recall query to its results.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)

MAX_QUERY_CHARS = 2_000
# The maximum number of results of a search without a query and without a limit.
DEFAULT_LIMIT = 200
# The minimum score of a relevant result (see memory.recall.ranking). Few irrelevant ones reach it.
MIN_SCORE = 8.0
# The maximum difference from the best score. At this difference, a result is e^-4 times as likely
# to answer the query as the best one.
MAX_SCORE_GAP = 4.0
# Parameters of packing into a budget, measured on labelled conversations (docs/recall.md).
# The weight of the logarithm of the tokens: of two equally good excerpts, the shorter comes first.
LENGTH_WEIGHT = 0.6
# For a message that continues a chat: a bonus for the best excerpt of each conversation, the share
# of the budget for short excerpts of further conversations, and the weight of their length.
FIRST_OF_CONVERSATION = 0.5
FURTHER_SHARE = 0.3
FURTHER_LENGTH_WEIGHT = 1.5

_WORDS = re.compile(r"[^\W\d_]+")
_SMALL_TALK = frozenset(wordpieces.WORDS["small_talk"].split())
_REFERENCES = frozenset(wordpieces.WORDS["reference"].split())
_NO_SUBJECT = _SMALL_TALK.union(
    _REFERENCES,
    wordpieces.WORDS["without_subject"].split(),
    wordpieces.WORDS["pieces"]["stop_word"].split(),
)
# If a message has more possible subject words than this, its query contains no earlier messages.
MAX_SUBJECT_WORDS = 2
MAX_EARLIER_TEXTS = 3
MAX_EARLIER_CHARS = 200


@RECALL_SECONDS.time()
def recall(
    scope: RecallScope, query: str, token_budget: int | None = None, limit: int | None = None
) -> list[RecallResult]:
    """Return the excerpts in `scope` that best answer `query`, at most `limit`, best first.

    With `token_budget`, return the complete excerpts that fit into it, in chronological order.
    Without a query, return the most recent excerpts.
    """
    query = storable(query).strip()[:MAX_QUERY_CHARS]
    if scope.speaker and not scope.alias_of:
        scope = resolve_alias(scope)
    has_facts = SourceType.FACT in scope.source_types
    find = _recall_with_facts if has_facts else _recall_excerpts
    results = find(scope, query, token_budget, limit)
    return results if token_budget is None else in_time_order(results)


def _recall_excerpts(
    scope: RecallScope, query: str, token_budget: int | None, limit: int | None
) -> list[RecallResult]:
    if not query:
        latest = search.find_latest(scope, limit or DEFAULT_LIMIT)
        packed = pack_into_budget((row.tokens for row in latest), token_budget, limit)
        return [latest[index]._replace(score=-index) for index in packed]
    ranked = find_ranked(scope, query)
    best = ranked.order[:limit] if token_budget is None else ranked.pack(token_budget, limit)
    return ranked.results(best) if best else []


def _recall_with_facts(
    scope: RecallScope, query: str, token_budget: int | None, limit: int | None
) -> list[RecallResult]:
    """Return facts together with the results of the other sources. Their scores are comparable."""
    facts = fact_search.visible_facts(scope, scope.valid_at or timezone.now())
    others = tuple(kind for kind in scope.source_types if kind != SourceType.FACT)
    scope_of_others = replace(scope, source_types=others)
    results = _recall_excerpts(scope_of_others, query, None, limit) if others else []
    if query:
        results += fact_search.search_facts(scope.project, facts, query, scope.booked_on)
        results.sort(key=lambda result: -result.score)
    else:
        latest = fact_search.latest_facts(scope.project, facts, limit or DEFAULT_LIMIT)
        newest_first = reversed(in_time_order([*results, *latest]))
        results = [result._replace(score=-index) for index, result in enumerate(newest_first)]
    tokens = (result.tokens for result in results)
    return [results[index] for index in pack_into_budget(tokens, token_budget, limit)]


def in_time_order(results: Iterable[RecallResult]) -> list[RecallResult]:
    """Return the results in chronological order, oldest first."""
    return sorted(results, key=lambda result: (result.occurred_at, result.first_seq, result.part))


@dataclass(frozen=True)
class RankedRows:
    """The rows of a search with their signals, and the weights that rank them.

    `conversations` has the index of each row's conversation. `message_share` is 0 if the query is a
    question, and 1 if it is a message that continues a chat (see `ParsedQuery`).
    """

    rows: Sequence[RecallResult]
    signals: Mapping[str, Floats]
    weights: Mapping[str, float | Floats]
    conversations: Ints
    message_share: float

    @cached_property
    def contributions(self) -> dict[str, Floats]:
        return ranking.score_contributions(self.signals, self.weights)

    @cached_property
    def scores(self) -> Floats:
        return ranking.total_scores(self.contributions)

    @property
    def order(self) -> list[int]:
        """Return the indexes of the rows in the scope, best first."""
        best_first = np.argsort(-self.scores, kind="stable").tolist()
        return [index for index in best_first if self.rows[index].in_scope]

    def pack(self, budget: int, limit: int | None) -> list[int]:
        """Return the indexes of the rows in the scope that fill a budget of `budget` tokens."""
        visible = np.flatnonzero([row.in_scope for row in self.rows])
        tokens = np.array([row.tokens for row in self.rows], np.int64)
        packed = pack_ranked(
            self.scores[visible],
            tokens[visible],
            self.conversations[visible],
            self.message_share,
            budget,
            limit,
        )
        return visible[packed].tolist()

    def results(self, indexes: Sequence[int]) -> list[RecallResult]:
        """Return the results at these indexes. Signals are rounded to three decimals."""
        columns = np.stack(list(self.contributions.values()), axis=1)
        rounded = np.round(columns[indexes].astype(float), 3).tolist()
        return [
            self.rows[index]._replace(
                score=round(float(self.scores[index]), 4),
                signals=dict(
                    part for part in zip(self.contributions, parts, strict=True) if part[1]
                ),
            )
            for index, parts in zip(indexes, rounded, strict=True)
        ]


def find_ranked(scope: RecallScope, query: str) -> RankedRows:
    """Return the candidates for `query`, ranked with WEIGHTS. If the scope includes files, all
    candidates are ranked with FILE_WEIGHTS, except passages that begin a turn of a transcript.
    """
    terms, size = fulltext.query_terms(scope.project, query)
    embedder = embedders.get()
    vector = embedders.query_vector(embedder, scope.project.pk, scope.booked_on, query)
    rows = search.find_candidates(scope, terms, size, embedder.name, vector)
    if SourceType.FILE not in scope.source_types:
        return rank_rows(query, rows, terms, zone=scope.project.zone)
    speakers = [speaker_in(row) for row in rows]
    if not any(speakers):
        return rank_rows(query, rows, terms, ranking.FILE_WEIGHTS, scope.project.zone)
    named = [
        row._replace(speaker=speaker or row.speaker)
        for row, speaker in zip(rows, speakers, strict=True)
    ]
    is_turn = np.array(speakers) != ""
    weights = {
        name: np.where(is_turn, ranking.WEIGHTS.get(name, 0.0), weight)
        for name, weight in ranking.FILE_WEIGHTS.items()
    }
    return replace(rank_rows(query, named, terms, weights, scope.project.zone), rows=rows)


def speaker_in(row: RecallResult) -> str:
    """Return the speaker of a passage that begins a turn of a transcript, or an empty text."""
    parts = row.speaker.split(", ")[-2:]
    return next((part for part in parts if begins_turn(row.text, part)), "")


def rank_rows(
    query: str,
    rows: Sequence[RecallResult],
    terms: Sequence[Term],
    weights: Mapping[str, float | Floats] = ranking.WEIGHTS,
    zone: tzinfo = UTC,
) -> RankedRows:
    """Return the ranked rows. `terms` are the terms of the query, and `zone` is the time zone of
    its dates.
    """
    if not rows:
        return RankedRows([], {}, {}, np.zeros(0, np.int64), 0)
    parsed = query_parsing.parse_query(query)
    columns: Any = RecallResult._make(zip(*rows, strict=True))
    speakers = {name for name in set(columns.speaker) if parsed.mentions(name)}
    prefixes = [part for name in speakers for part in name.lower().split()]
    is_name = [any(part.startswith(term.word[:4]) for part in prefixes) for term in terms]
    idf = np.array([term.idf for term in terms], np.float32) * ~np.array(is_name, bool)
    pieces = wordpieces.query_pieces(query_parsing.remove_names(query, speakers))
    # A query that mentions several speakers does not ask about any single one of them.
    is_speaker = np.array([len(speakers) == 1 and name in speakers for name in columns.speaker])
    arrays = _to_arrays(columns, len(terms), zone if parsed.dates else None)
    signals = ranking.measure_signals(parsed, pieces, arrays, idf, is_speaker)
    if "words_own" in weights:
        signals["words_own"] = arrays.matched @ idf / max(float(idf.sum()), 1e-9)
    return RankedRows(rows, signals, weights, arrays.source, parsed.message_share)


def _to_arrays(columns: Any, terms: int, zone: tzinfo | None) -> CandidateRows:
    """Return the search's columns as arrays. `columns` has a tuple for each RecallResult field.

    `zone` is None unless the query contains dates. Days are in this zone, or in UTC without one.
    The days that the texts mention are read only with a zone.
    """
    days = (np.array(columns.occurred) // 86_400).astype(int).tolist()
    mentions: list[list[int]] = [[] for _ in days]
    if zone is not None:
        days = [_day_in(zone, seconds) for seconds in columns.occurred]
        mentions = [
            [(other - EPOCH).days for other in find_relative_days(text, EPOCH + timedelta(day))]
            for text, day in zip(columns.text, days, strict=True)
        ]
    notes = np.array([kind == SourceType.NOTE for kind in columns.source_type])
    starts = np.array([True, *(source != other for source, other in pairwise(columns.source))])
    return CandidateRows(
        # Each note is its own source, because the preceding and following notes are unrelated.
        source=np.cumsum(starts | notes) - 1,
        first_seq=np.where(notes, 1, columns.first_seq),
        last_seq=np.where(notes, 1, columns.last_seq),
        matched=(np.array(columns.matched, np.int64)[:, None] >> np.arange(terms)) & 1 > 0,
        # Without a vector, the similarity is unknown.
        similarity=np.nan_to_num(np.array(columns.similarity, np.float32)),
        pieces=columns.pieces,
        days=days,
        mentions=mentions,
        by_assistant=np.array([role == Role.ASSISTANT for role in columns.role]),
        parts=np.array(columns.part),
    )


def _day_in(zone: tzinfo, seconds: float) -> int:
    """Return the day in `zone`, in days since 1970, of a time in seconds since 1970."""
    moment = datetime.fromtimestamp(seconds, UTC)
    # In the years 1 and 9999, the time in another zone may be out of the range of `datetime`.
    with suppress(OverflowError, ValueError):
        moment = moment.astimezone(zone)
    return (moment.date() - EPOCH).days


def is_small_talk(text: str) -> bool:
    """Return whether a message has nothing to search for: thanks, greetings, agreement.

    A question is not small talk, because it may be about the message before it. A number of several
    digits, such as 4711 or a date, can be searched for.
    """
    text = text[:MAX_QUERY_CHARS].lower()
    if "?" in text or sum(map(str.isdigit, text)) > 1:
        return False
    return all(word in _SMALL_TALK for word in _WORDS.findall(text))


def query_in_chat(text: str, earlier: Iterable[str]) -> str:
    """Return the recall query for a message of a chat. `earlier` are the preceding texts, latest
    first.

    If a text refers to something mentioned earlier and hardly names a subject ("what about the
    second one?"), the beginning of the preceding text is added, until a text names its subject.
    """
    query = [text]
    for before in islice(earlier, MAX_EARLIER_TEXTS):
        if not _refers_back(query[-1][:MAX_QUERY_CHARS]):
            break
        query.append(before[:MAX_EARLIER_CHARS])
    return "\n".join(query)


def _refers_back(text: str) -> bool:
    words = _WORDS.findall(text.lower())
    subject = [word for word in words if word not in _NO_SUBJECT]
    return len(subject) <= MAX_SUBJECT_WORDS and not _REFERENCES.isdisjoint(words)


def filter_relevant(
    best_first: Sequence[RecallResult], min_score: float = MIN_SCORE
) -> list[RecallResult]:
    """Return the results with a score of at least `min_score` that is near the best score."""
    if not best_first:
        return []
    least = max(min_score, best_first[0].score - MAX_SCORE_GAP)
    return [result for result in best_first if result.score >= least]


def pack_ranked(
    scores: Floats,
    tokens: Ints,
    conversations: Ints,
    message_share: float,
    budget: int,
    limit: int | None = None,
) -> list[int]:
    """Return the indexes of the excerpts to put into `budget` tokens, at most `limit`. No excerpt
    is cut.

    A question gets the best excerpts. A message that continues a chat may refer to several
    conversations. Therefore, in proportion to `message_share` (0 to 1), part of the budget is used
    for one short excerpt of each conversation that has none among the best.
    """
    length = np.log(np.maximum(tokens, 1)).astype(np.float32)
    values = scores - LENGTH_WEIGHT * length
    values[best_of_each(conversations, values)] += FIRST_OF_CONVERSATION * message_share
    order = np.argsort(-values, kind="stable")
    first_budget = int(budget * (1 - FURTHER_SHARE * message_share))
    packed = order[pack_into_budget(tokens[order].tolist(), first_budget, limit)]
    short = best_of_each(conversations, scores - FURTHER_LENGTH_WEIGHT * length)
    further = short[~np.isin(conversations[short], conversations[packed])]
    rest = np.concatenate([further, order[~np.isin(order, [*packed, *further])]])
    remaining = budget - int(tokens[packed].sum())
    more = pack_into_budget(
        tokens[rest].tolist(), remaining, None if limit is None else limit - len(packed)
    )
    return [*packed.tolist(), *rest[more].tolist()]


def best_of_each(conversations: Ints, values: Floats) -> Ints:
    """Return, for each conversation, the index of the row with the highest value, best first."""
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(conversations[order], return_index=True)
    return order[np.sort(first)]


def pack_into_budget(
    tokens: Iterable[int], budget: int | None = None, limit: int | None = None
) -> list[int]:
    """Return the indexes of the texts that fit into `budget` tokens, at most `limit`. No text is
    cut.

    `tokens` are the lengths of the texts, best text first. A text that does not fit is skipped.
    """
    packed: list[int] = []
    for index, size in enumerate(tokens):
        if limit is not None and len(packed) >= limit:
            break
        if budget is None:
            packed.append(index)
        elif size <= budget:
            packed.append(index)
            budget -= size
    return packed


def format_excerpt(at: datetime, speaker: str, text: str, zone: tzinfo) -> str:
    """Return an excerpt as a line of a prompt: its day in `zone`, the speaker and the quoted text.

    The number of tokens does not depend on the zone.
    """
    name = quoting.quote_on_one_line(speaker)
    return f"[{at.astimezone(zone):%Y-%m-%d}] {name}: {quoting.quote(text)}\n"
