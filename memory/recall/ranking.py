"""Ranking: computes signals for each candidate row, and combines them into a score. Pure.

Rows are ordered by source, so that the neighbours of an excerpt are the adjacent rows. Signals that
add up over the words of a query are weighted by the rarity of the words and divided by the total
weight. A value of about 1 then means that the whole query matches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memory.recall import wordpieces
from memory.recall.query_parsing import ParsedQuery
from memory.recall.wordpieces import PieceKind

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The score is a weighted sum. The softmax of the scores of a query's rows is the fitted probability
# that a row answers the query (docs/recall.md).
WEIGHTS: Mapping[str, float] = {
    # The role and form of an excerpt, and its time if the query asks for the latest or continues a
    # chat. These weights are set by hand, because the best values depend on the kind of
    # conversation.
    "assistant": -1.5,
    "assistant_message": 1.0,
    "assistant_self": -1.0,
    "part": -1.5,
    "opening": 0.2,
    "length": -0.25,
    "asked_latest": 1.0,
    "recent_message": 0.4,
    # The other weights are not negative. They were fitted on three kinds of labelled conversations,
    # which counted equally. First, exact words of the query: in the excerpt and its neighbours,
    # after it, near it, and in the best excerpt of its conversation.
    "words_turn": 0.965,
    "words_after": 0.303,
    "words_window": 1.434,
    "words_session": 1.844,
    # Words of similar meaning in the excerpt. In `meaning_rare`, rare words count more. The next
    # four are for words elsewhere: in the excerpt before it, in the one after it, in the others
    # near it, and in the rest of its conversation. Each counts only as far as the words match
    # better there than in all places that are listed before it.
    "meaning": 6.249,
    "meaning_rare": 2.504,
    "meaning_before": 4.683,
    "meaning_after": 1.673,
    "meaning_further": 4.395,
    "meaning_session": 0.874,
    # The similarity of vectors: of this excerpt, of the next excerpt, the mean of this excerpt and
    # its neighbours, and that of the best excerpt of the conversation.
    "likeness": 1.044,
    "likeness_after": 0.407,
    "likeness_near": 1.136,
    "likeness_session": 2.295,
    # The speaker and the kind of answer.
    "speaker": 1.209,
    "answers": 0.343,
    "speaker_of_self": 1.580,
    "asked_names": 2.004,
    "asked_when": 1.491,
    # The days that the query mentions.
    "day": 4.312,
    "day_after": 0.599,
    "day_before": 1.465,
}
# Weights for documents. The answer is in the passage itself: unlike in a chat, it does not follow a
# question in a passage before.
FILE_WEIGHTS: Mapping[str, float] = {
    **WEIGHTS,
    "opening": 0.0,
    # The share of the query's words, weighted by rarity, that the passage itself contains.
    "words_own": 5.0,
    "words_after": 0.0,
    "words_window": 0.5,
    "words_session": 0.5,
    "meaning_before": 1.0,
    "meaning_after": 0.5,
    "meaning_further": 0.5,
    "likeness": 6.0,
    "likeness_after": 0.0,
    "answers": 0.0,
    "recent_message": 0.0,
}
# BM25's parameters for saturation and length normalisation.
# https://doi.org/10.1561/1500000019, section 3
K1, B = 1.2, 0.75
# The maximum distance between neighbours in a source, in messages.
MAX_NEIGHBOUR_GAP = 4
EPOCH = date(1970, 1, 1)


def score_contributions(
    signals: Mapping[str, Floats], weights: Mapping[str, float | Floats]
) -> dict[str, Floats]:
    """Return what each signal adds to the score of each row. Empty if there are no rows.

    A weight is the same for all rows, or an array with a weight for each row.
    """
    return {name: weight * signals[name] for name, weight in weights.items() if name in signals}


def total_scores(contributions: Mapping[str, Floats]) -> Floats:
    """Return the score of each row. Higher is better."""
    if not contributions:
        return np.zeros(0, np.float32)
    return np.sum(list(contributions.values()), axis=0)


@dataclass(frozen=True)
class CandidateRows:
    """The candidates and their neighbours. Each field is a column of the rows, as an array or a
    sequence.

    `source` is the index of each row's source, in ascending order. `matched` has a column for each
    term of the query. `similarity` is the cosine of the vectors of row and query, 0 without a
    vector. `days` are days since 1 January 1970. `mentions` are the days to which the text refers
    ("yesterday"), in the same unit. They are set only if the query contains dates. `parts` are the
    numbers of the parts of long messages.
    """

    source: Ints
    first_seq: Ints
    last_seq: Ints
    matched: Bools
    similarity: Floats
    pieces: Sequence[bytes]
    days: Sequence[int]
    mentions: Sequence[Sequence[int]]
    by_assistant: Bools
    parts: Ints

    def __len__(self) -> int:
        return len(self.source)

    def maximum_by_source(self, values: NDArray) -> NDArray:
        """Return for each row the maximum of `values` over all rows of its source."""
        starts = np.flatnonzero(np.diff(self.source, prepend=-1))
        return np.maximum.reduceat(values, starts, axis=0)[self.source]


@dataclass(frozen=True)
class Neighbours:
    """The indexes of the preceding and following rows of each row; len(rows) if there is none."""

    before: Ints
    after: Ints
    before2: Ints
    after2: Ints
    before3: Ints
    after3: Ints

    @classmethod
    def of(cls, rows: CandidateRows) -> "Neighbours":
        """Return the neighbours of each row within its source."""
        count = len(rows)
        index = np.arange(count)
        joined = np.zeros(count + 1, bool)
        near = rows.first_seq[1:] - rows.last_seq[:-1] <= MAX_NEIGHBOUR_GAP
        joined[1:-1] = (rows.source[1:] == rows.source[:-1]) & near
        before = np.append(np.where(joined[:-1], index - 1, count), count)
        after = np.append(np.where(joined[1:], index + 1, count), count)
        before2, after2 = before[before], after[after]
        columns = (before, after, before2, after2, before[before2], after[after2])
        return cls(*(column[:-1] for column in columns))


def measure_signals(
    query: ParsedQuery, query_pieces: Ints, rows: CandidateRows, idf: Floats, is_speaker: Bools
) -> dict[str, Floats]:
    """Return every signal of every row.

    `idf` are the weights of the columns of `rows.matched`. If the query mentions exactly one
    speaker, `is_speaker` is true for the rows of this speaker.
    """
    neighbours = Neighbours.of(rows)
    names, ids, sizes = wordpieces.unpack(rows.pieces)
    count_kind = kind_counter(ids, sizes)
    signals = word_signals(rows, neighbours, idf, sizes)
    signals |= meaning_signals(query_pieces, rows, neighbours, ids, sizes)
    signals |= vector_signals(rows, neighbours)
    signals |= speech_signals(query, rows, neighbours, count_kind, sizes, names, is_speaker)
    signals |= time_signals(query, rows, count_kind)
    signals |= role_signals(query, rows)
    return {name: values.astype(np.float32) for name, values in signals.items()}


def values_at(values: NDArray, indexes: Ints) -> NDArray:
    """Return the values at `indexes`, and zero for neighbours that do not exist."""
    zero = np.zeros((1, *values.shape[1:]), values.dtype)
    return np.concatenate([values, zero])[indexes]


def word_signals(
    rows: CandidateRows, neighbours: Neighbours, idf: Floats, sizes: Ints
) -> dict[str, Floats]:
    """Return how well the exact words of the query match the row, rows near it and its session."""
    matched = rows.matched.astype(np.float32)
    total = float(idf.sum()) or 1.0
    length = sizes.astype(np.float32) + 1
    alone = bm25(matched, length, idf) / total
    nearest = (neighbours.before, neighbours.after, neighbours.before2, neighbours.after2)
    window = (*nearest, neighbours.before3, neighbours.after3)
    counts = matched + sum(values_at(matched, indexes) for indexes in window)
    window_length = length + sum(values_at(length, indexes) for indexes in window)
    beside = (neighbours.before, neighbours.after)
    turn_counts = matched + sum(values_at(matched, indexes) for indexes in beside)
    turn_length = length + sum(values_at(length, indexes) for indexes in beside)
    return {
        "words_turn": bm25(turn_counts, turn_length, idf) / total,
        "words_after": values_at(alone, neighbours.after),
        "words_window": bm25(counts, window_length, idf) / total,
        "words_session": rows.maximum_by_source(alone),
    }


def bm25(counts: Floats, length: Floats, idf: Floats) -> NDArray[np.floating]:
    """Return the BM25 score of each row of term counts."""
    norm = K1 * (1 - B + B * length / max(float(length.mean()), 1.0))
    return (counts * (K1 + 1) / (counts + norm[:, None])) @ idf


def meaning_signals(
    query_pieces: Ints, rows: CandidateRows, neighbours: Neighbours, ids: Ints, sizes: Ints
) -> dict[str, Floats]:
    """Return how similar the words of the query are to the most similar words in each row and in
    the places around it.

    The places are, in this order: the row, the preceding row, the following row, the rows next to
    these two, and the session. A place counts only as far as its words match better than those of
    all earlier places in this order.
    """
    best = best_similarities(query_pieces, ids, sizes)
    share = (best > 0.6).mean(axis=0) if len(rows) else np.zeros(len(query_pieces))
    rarity = np.log(1 + (1 - share) / (share + 1 / max(len(rows), 1))).astype(np.float32)
    weights = wordpieces.vocabulary().weights[query_pieces]
    total, total_rarity = float(weights.sum()) or 1.0, float(rarity.sum()) or 1.0
    signals = {
        "meaning": without_length(best @ weights / total, sizes),
        "meaning_rare": without_length(best @ rarity / total_rarity, sizes),
    }
    further = np.maximum(values_at(best, neighbours.before2), values_at(best, neighbours.after2))
    levels = {
        "meaning_before": values_at(best, neighbours.before),
        "meaning_after": values_at(best, neighbours.after),
        "meaning_further": further,
        "meaning_session": rows.maximum_by_source(best),
    }
    reached = best
    for name, level in levels.items():
        better = np.maximum(reached, level)
        signals[name] = (better - reached) @ rarity / total_rarity
        reached = better
    return signals


def without_length(values: Floats, sizes: Ints) -> Floats:
    """Return `values` minus their linear dependence on the logarithm of the row length.

    With more words, the best match is better by chance. The slope of the dependence is fitted by
    least squares, and is never negative.
    """
    length = np.log1p(sizes).astype(np.float32)
    length -= length.mean()
    slope = float(length @ (values - values.mean())) / max(float(length @ length), 1e-9)
    return values - max(slope, 0.0) * length


def best_similarities(query_pieces: Ints, ids: Ints, sizes: Ints) -> Floats:
    """Return a matrix with a row for each candidate and a column for each query piece: the highest
    cosine of the query piece with any piece of the candidate, at least 0.

    `ids` are the pieces of all rows, `sizes` the number of pieces of each row.
    """
    known = wordpieces.vocabulary()
    best = np.zeros((len(sizes), len(query_pieces)), np.float32)
    occurs = np.zeros(len(known.kinds), bool)
    occurs[ids] = True
    pieces = np.flatnonzero(occurs & ((known.kinds & PieceKind.STOP_WORD) == 0))
    if len(pieces) and len(query_pieces):
        cosines = np.zeros((len(occurs), len(query_pieces)), np.float32)
        vectors, query_vectors = map(known.unit_vectors, (pieces, query_pieces))
        # einsum instead of `@`: for small products, BLAS uses threads and is many times slower.
        cosines[pieces] = np.einsum("ij,kj->ik", vectors, query_vectors)
        has_pieces = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[has_pieces]
        nearest = np.maximum.reduceat(cosines.take(ids, axis=0), starts, axis=0)
        best[has_pieces] = np.maximum(nearest, 0)
    return best


def vector_signals(rows: CandidateRows, neighbours: Neighbours) -> dict[str, Floats]:
    """Return the vector similarity of each row, of the rows next to it and of its session."""
    similarity = rows.similarity
    ones = np.ones(len(rows), np.float32)
    beside = (neighbours.before, neighbours.after)
    near = similarity + sum(values_at(similarity, indexes) for indexes in beside)
    count = ones + sum(values_at(ones, indexes) for indexes in beside)
    return {
        "likeness": similarity,
        "likeness_after": values_at(similarity, neighbours.after),
        "likeness_near": near / count,
        "likeness_session": rows.maximum_by_source(similarity),
    }


def kind_counter(ids: Ints, sizes: Ints) -> Callable[[PieceKind], Floats]:
    """Return a function that counts, for each row, the word pieces of a kind."""
    kinds = wordpieces.vocabulary().kinds[ids]
    # First select the pieces that have a kind, because they are few.
    indexes = np.flatnonzero(kinds)
    row_of = np.searchsorted(np.cumsum(sizes), indexes, side="right")
    kinds = kinds[indexes]

    def count(kind: PieceKind) -> Floats:
        rows = row_of[(kinds & kind) != 0]
        return np.bincount(rows, minlength=len(sizes)).astype(np.float32)

    return count


def speech_signals(
    query: ParsedQuery,
    rows: CandidateRows,
    neighbours: Neighbours,
    count_kind: Callable[[PieceKind], Floats],
    sizes: Ints,
    names: NDArray[np.uint16],
    is_speaker: Bools,
) -> dict[str, Floats]:
    """Return signals of speaker and form. For example, an answer often follows a question."""
    asks = (count_kind(PieceKind.QUESTION_MARK) > 0).astype(np.float32)
    speaks = is_speaker.astype(np.float32)
    of_self = np.minimum(count_kind(PieceKind.FIRST_PERSON), 4) / 4
    name_share = np.minimum(names.astype(np.float32), 4) / 4
    return {
        "speaker": speaks,
        "answers": values_at(asks, neighbours.before),
        "speaker_of_self": speaks * of_self,
        "length": np.log1p(sizes).astype(np.float32),
        "asked_names": name_share * query.asks_names,
        "opening": (rows.first_seq <= 1).astype(np.float32),
    }


def time_signals(
    query: ParsedQuery, rows: CandidateRows, count_kind: Callable[[PieceKind], Floats]
) -> dict[str, Floats]:
    """Return signals of time: the dates of the query, times in the text, and the age of the row."""
    mentions_time = (count_kind(PieceKind.TIME) > 0).astype(np.float32)
    inside, after, before = (np.zeros(len(rows), np.float32) for _ in range(3))
    for dates in query.dates:
        days = {*rows.days, *chain.from_iterable(rows.mentions)}
        distances = {day: dates.distance(EPOCH + timedelta(day)) for day in days}
        distance = np.array([distances[day] for day in rows.days], np.float32)
        mentioned = [any(distances[day] == 0 for day in days) for days in rows.mentions]
        inside = np.maximum(inside, (distance == 0) | np.array(mentioned, bool))
        after = np.maximum(after, np.where(distance > 0, 1 - distance / 15, 0))
        before = np.maximum(before, np.where(distance < 0, 1 + distance / 45, 0))
    # The rank of each row in chronological order, scaled: 0 is the oldest, 1 the latest.
    order = np.argsort(np.argsort(rows.days, kind="stable"), kind="stable")
    recency = order.astype(np.float32) / np.float32(max(len(rows) - 1, 1))
    return {
        "asked_when": mentions_time * query.asks_when,
        "day": inside,
        "day_after": after,
        "day_before": before,
        "asked_latest": recency * query.asks_latest,
        "recent_message": -np.log1p(later_conversations(rows)) * query.message_share,
    }


def later_conversations(rows: CandidateRows) -> Floats:
    """Return, for each row, how many conversations ended after its conversation."""
    ends = rows.maximum_by_source(np.array(rows.days))
    starts = np.flatnonzero(np.diff(rows.source, prepend=-1))
    later = len(starts) - np.searchsorted(np.sort(ends[starts]), ends, side="right")
    return later.astype(np.float32)


def role_signals(query: ParsedQuery, rows: CandidateRows) -> dict[str, Floats]:
    """Return signals of the role. Messages of people count more, because assistants write more. A
    message that continues a chat often refers to what the assistant wrote. A question about the
    person who asks it is answered by messages of people.
    """
    by_assistant = rows.by_assistant.astype(np.float32)
    return {
        "assistant": by_assistant,
        "assistant_message": by_assistant * query.message_share,
        "assistant_self": by_assistant * query.asks_of_self * (1 - query.message_share),
        "part": np.minimum(rows.parts, 4).astype(np.float32) / np.float32(4),
    }
