"""The one function behind pages, API and prompt that finds again what was said."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np

from chat.storable import storable
from memory.metrics import RECALL
from memory.models import SourceType
from memory.recall import embedders, fusion, packing, pieces, question, search, signals, words
from memory.recall.embedders.base import Matrix
from memory.recall.search import Found, Scope
from memory.recall.signals import Floats, Rows
from memory.recall.words import Term

log = logging.getLogger(__name__)

# Characters of a question that are read.
LONGEST = 2_000
# Results of a search without a limit.
MOST = 200


@dataclass(frozen=True)
class Result:
    """An excerpt. `tokens` are those of its line in a prompt, with date and speaker (cl100k_base);
    `signals` tell what each signal added to the score.
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
    occurred_at: datetime
    text: str
    tokens: int
    score: float
    signals: Mapping[str, float]

    @property
    def source_id(self) -> str:
        """Which messages it holds, as `source:first-last`."""
        return f"{self.source}:{self.first_seq}-{self.last_seq}"


@RECALL.time()
def recall(
    scope: Scope, query: str, token_budget: int | None = None, limit: int | None = None
) -> list[Result]:
    """What answers `query` best within `scope`, at most `limit` excerpts: the best first, or, given
    a budget, those that fit whole into `token_budget` tokens, in time order. Without a query, the
    most recent.
    """
    query = storable(query).strip()[:LONGEST]
    if not query:
        latest = search.recent(scope, limit or MOST)
        packed = packing.pack((row.tokens for row in latest), token_budget, limit)
        found = [_result(latest[place], -place, {}) for place in packed]
        return found if token_budget is None else in_time_order(found)
    judged = _judged(scope, query)
    ranked = judged.order
    packed = packing.pack((judged.rows[place].tokens for place in ranked), token_budget, limit)
    found = judged.results([ranked[place] for place in packed]) if packed else []
    return found if token_budget is None else in_time_order(found)


def in_time_order(results: Iterable[Result]) -> list[Result]:
    return sorted(results, key=lambda one: (one.occurred_at, one.first_seq, one.part))


@dataclass(frozen=True)
class _Judged:
    """The rows of a search with their scores, and what each signal gave to each row."""

    rows: Sequence[Found]
    scores: Floats
    parts: Mapping[str, Floats]

    @property
    def order(self) -> list[int]:
        """The places of the rows that may be results, the best first."""
        best_first = np.argsort(-self.scores, kind="stable").tolist()
        return [place for place in best_first if self.rows[place].fits]

    def results(self, places: Sequence[int]) -> list[Result]:
        """The rows at these places, the signals in thousandths."""
        told = np.round(np.stack(list(self.parts.values()), axis=1)[places].astype(float), 3)
        return [
            _result(
                self.rows[place],
                float(self.scores[place]),
                {name: value for name, value in zip(self.parts, values, strict=True) if value},
            )
            for place, values in zip(places, told.tolist(), strict=True)
        ]


def _judged(scope: Scope, query: str) -> _Judged:
    asked, size = words.terms(scope.project, query)
    name, vector = _embedded(query)
    rows = search.candidates(scope, asked, size, name, vector)
    if not rows:
        return _Judged([], np.zeros(0, np.float32), {})
    parts = fusion.contributions(measure(query, rows, asked))
    return _Judged(rows, fusion.total(parts), parts)


def measure(query: str, rows: Sequence[Found], asked: Sequence[Term]) -> dict[str, Floats]:
    """The signals of each row, for a question whose terms are `asked`."""
    read = question.read(query)
    columns: Any = Found._make(zip(*rows, strict=True))
    named = {name for name in set(columns.speaker) if read.names(name)}
    is_name = np.array([_is_name(term, named) for term in asked], bool)
    idf = np.array([term.idf for term in asked], np.float32) * ~is_name
    about = pieces.of_query(question.without(query, named))
    # A question that names several tells nothing by it.
    speaks = np.array([len(named) == 1 and speaker in named for speaker in columns.speaker])
    return signals.measure(read, about, _rows(columns, len(asked)), idf, speaks)


def _is_name(term: Term, named: Collection[str]) -> bool:
    return any(part.startswith(term.word[:4]) for name in named for part in name.lower().split())


def _rows(columns: Any, terms: int) -> Rows:
    """What was found, a tuple for each field of Found, as arrays."""
    notes = np.array([kind == SourceType.NOTE for kind in columns.source_type])
    begins = np.array([True, *(one != other for one, other in pairwise(columns.source))])
    return Rows(
        # A note stands by itself, whatever was noted before and after.
        source=np.cumsum(begins | notes) - 1,
        first_seq=np.where(notes, 1, columns.first_seq),
        last_seq=np.where(notes, 1, columns.last_seq),
        met=(np.array(columns.met, np.int64)[:, None] >> np.arange(terms)) & 1 > 0,
        # Without a vector, nothing tells how like it is.
        likeness=np.nan_to_num(np.array(columns.likeness, np.float32)),
        packed=columns.pieces,
        speakers=columns.speaker,
        days=(np.array(columns.occurred) // 86_400).astype(int).tolist(),
    )


def _embedded(query: str) -> tuple[str, Matrix | None]:
    """The embedder's name and the question's vector; none when it cannot be had just now."""
    embedder = embedders.get()
    try:
        vector = embedder.query(query)
    except embedders.EmbedderError as error:
        log.warning("recall_without_vectors embedder=%s reason=%s", embedder.name, error)
        return embedder.name, None
    return embedder.name, vector if vector.any() else None


def _result(row: Found, score: float, told: Mapping[str, float]) -> Result:
    return Result(
        id=row.id,
        source_type=row.source_type,
        source=row.source,
        session=row.session_id,
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        part=row.part,
        role=row.role,
        speaker=row.speaker,
        occurred_at=row.at,
        text=row.text,
        tokens=row.tokens,
        score=round(score, 4),
        signals=told,
    )
