"""What speaks for an excerpt: each signal a number for each row. Pure, over arrays.

Rows come in the order of their sources, so that an excerpt's neighbours are those beside it. What
is added up over a question's words is weighted by how rare they are, and divided by their whole
weight: it says which share of the question is met.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from memory.recall import pieces
from memory.recall.pieces import Kind
from memory.recall.question import Question

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# BM25's saturation and length normalisation.
# https://doi.org/10.1561/1500000019, section 3
K1, B = 1.2, 0.75
# Rows further apart in their source than this many messages are no neighbours.
GAP = 4
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Rows:
    """The excerpts to be judged: candidates and what stands around them.

    `source` numbers the sources in their order; `met` tells which terms of the question (columns)
    a row holds; `likeness` is the cosine of its vector and the question's, 0 without a vector;
    `days` count from 1 January 1970.
    """

    source: Ints
    first_seq: Ints
    last_seq: Ints
    met: Bools
    likeness: Floats
    packed: Sequence[bytes]
    speakers: Sequence[str]
    days: Sequence[int]

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class _Around:
    """Who stands beside whom: the places of the rows before and after, len(rows) for nobody."""

    before: Ints
    after: Ints
    before2: Ints
    after2: Ints
    before3: Ints
    after3: Ints


def _around(rows: Rows) -> _Around:
    count = len(rows)
    here = np.arange(count)
    joined = np.zeros(count + 1, bool)
    near = rows.first_seq[1:] - rows.last_seq[:-1] <= GAP
    joined[1:-1] = (rows.source[1:] == rows.source[:-1]) & near
    before = np.append(np.where(joined[:-1], here - 1, count), count)
    after = np.append(np.where(joined[1:], here + 1, count), count)
    before2, after2 = before[before], after[after]
    return _Around(
        *(it[:-1] for it in (before, after, before2, after2, before[before2], after[after2]))
    )


def measure(
    question: Question, asked: Ints, rows: Rows, idf: Floats, named: Bools
) -> dict[str, Floats]:
    """Every signal of every row. `asked` are the question's word pieces, `idf` weighs the columns
    of `rows.met`, and `named` says of which rows the question names the speaker.
    """
    around = _around(rows)
    names, ids, sizes = pieces.unpack(rows.packed)
    kinds = _kinds(ids, sizes)
    signals = _words(rows, around, idf, sizes)
    signals |= _meanings(asked, rows, around, ids, sizes)
    signals |= _vectors(rows, around)
    signals |= _speech(question, rows, around, kinds, sizes, names, named)
    signals |= _time(question, rows, kinds)
    return {name: values.astype(np.float32) for name, values in signals.items()}


def _at(values: NDArray, places: Ints) -> NDArray:
    """The values at `places`, zero for nobody."""
    nobody = np.zeros((1, *values.shape[1:]), values.dtype)
    return np.concatenate([values, nobody])[places]


def _by_source(rows: Rows, values: NDArray, combine: np.ufunc) -> NDArray:
    """`values` combined over all rows of each source, for each row."""
    starts = np.flatnonzero(np.diff(rows.source, prepend=-1))
    return combine.reduceat(values, starts, axis=0)[rows.source]


def _gains(own: Floats, levels: Sequence[Floats], weights: Floats, whole: float) -> list[Floats]:
    """What each level meets of the question beyond the levels before it, as shares of it."""
    gains = []
    for level in levels:
        better = np.maximum(own, level)
        gains.append((better - own) @ weights / whole)
        own = better
    return gains


def _words(rows: Rows, around: _Around, idf: Floats, sizes: Ints) -> dict[str, Floats]:
    """Which words of the question stand around a row, and in its conversation."""
    met = rows.met.astype(np.float32)
    whole = float(idf.sum()) or 1.0
    length = sizes.astype(np.float32) + 1
    wide = (around.before, around.after, around.before2, around.after2, around.before3)
    window = met + sum(_at(met, places) for places in (*wide, around.after3))
    window_length = length + sum(_at(length, places) for places in (*wide, around.after3))
    everywhere = _by_source(rows, met, np.add)
    source_length = _by_source(rows, length, np.add)
    return {
        "words_window": _bm25(window, window_length, idf) / whole,
        "words_session": _bm25(everywhere, source_length, idf) / whole,
    }


def _bm25(counts: Floats, length: Floats, idf: Floats) -> NDArray[np.floating]:
    norm = K1 * (1 - B + B * length / max(float(length.mean()), 1.0))
    return (counts * (K1 + 1) / (counts + norm[:, None])) @ idf


def _meanings(
    asked: Ints, rows: Rows, around: _Around, ids: Ints, sizes: Ints
) -> dict[str, Floats]:
    """How nearly each word of the question is met by the nearest word of a row, and around it."""
    best = _best(asked, ids, sizes)
    share = (best > 0.6).mean(axis=0) if len(rows) else np.zeros(len(asked))
    rarity = np.log(1 + (1 - share) / (share + 1 / max(len(rows), 1))).astype(np.float32)
    weights = pieces.vocabulary().weights[asked]
    whole, whole_rare = float(weights.sum()) or 1.0, float(rarity.sum()) or 1.0
    further = np.maximum(_at(best, around.before2), _at(best, around.after2))
    everywhere = _by_source(rows, best, np.maximum)
    levels = [_at(best, around.before), _at(best, around.after), further, everywhere]
    gains = _gains(best, levels, rarity, whole_rare)
    return {
        "meaning": best @ weights / whole,
        "meaning_rare": best @ rarity / whole_rare,
        "meaning_before": gains[0],
        "meaning_after": gains[1],
        "meaning_further": gains[2],
        "meaning_session": gains[3],
    }


def _best(asked: Ints, ids: Ints, sizes: Ints) -> Floats:
    """Rows × pieces of the question: the cosine with the nearest piece of the row, at least 0."""
    known = pieces.vocabulary()
    best = np.zeros((len(sizes), len(asked)), np.float32)
    there = np.zeros(len(known.kinds), bool)
    there[ids] = True
    telling = np.flatnonzero(there & ((known.kinds & Kind.EMPTY) == 0))
    if len(telling) and len(asked):
        near = np.zeros((len(there), len(asked)), np.float32)
        # Not `@`: so small a product takes many times as long when BLAS shares it among threads.
        near[telling] = np.einsum("ij,kj->ik", known.units[telling], known.units[asked])
        filled = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[filled]
        nearest = np.maximum.reduceat(near.take(ids, axis=0), starts, axis=0)
        best[filled] = np.maximum(nearest, 0)
    return best


def _vectors(rows: Rows, around: _Around) -> dict[str, Floats]:
    """How like the question a row is with those beside it, and its conversation."""
    like = rows.likeness
    here = np.ones(len(rows), np.float32)
    beside = (around.before, around.after)
    near = like + sum(_at(like, places) for places in beside)
    count = here + sum(_at(here, places) for places in beside)
    session = _by_source(rows, like, np.add) / _by_source(rows, here, np.add)
    return {
        "likeness_near": near / count,
        "likeness_session": session,
    }


def _kinds(ids: Ints, sizes: Ints) -> Callable[[Kind], Floats]:
    """How many pieces of a kind each row has."""
    found = pieces.vocabulary().kinds[ids]
    # Few pieces are of a kind that is counted.
    some = np.flatnonzero(found)
    row_of = np.searchsorted(np.cumsum(sizes), some, side="right")
    found = found[some]

    def count(kind: Kind) -> Floats:
        rows = row_of[(found & kind) != 0]
        return np.bincount(rows, minlength=len(sizes)).astype(np.float32)

    return count


def _speech(
    question: Question,
    rows: Rows,
    around: _Around,
    kinds: Callable[[Kind], Floats],
    sizes: Ints,
    names: NDArray[np.uint16],
    named: Bools,
) -> dict[str, Floats]:
    """Who speaks, and how: the answer to a question is rarely a question."""
    asks = (kinds(Kind.ASKS) > 0).astype(np.float32)
    speaks = named.astype(np.float32)
    own = np.minimum(kinds(Kind.SELF), 4) / 4
    capitals = np.minimum(names.astype(np.float32), 4) / 4
    return {
        "speaker": speaks,
        "asks": asks,
        "answers": _at(asks, around.before),
        "of_self": own,
        "speaker_of_self": speaks * own,
        "to_other": np.minimum(kinds(Kind.OTHER), 4) / 4,
        "brief": np.minimum(sizes, 60).astype(np.float32) / 60,
        "names": capitals,
        "asked_names": capitals * question.asks_names,
        "opening": (rows.first_seq <= 1).astype(np.float32),
    }


def _time(question: Question, rows: Rows, kinds: Callable[[Kind], Floats]) -> dict[str, Floats]:
    """Days that the question names, against the day of the row and what it says of time."""
    timed = (kinds(Kind.TIME) > 0).astype(np.float32)
    inside, after, before = (np.zeros(len(rows), np.float32) for _ in range(3))
    for days in question.days:
        known = {day: days.distance(EPOCH + timedelta(day)) for day in set(rows.days)}
        distance = np.array([known[day] for day in rows.days], np.float32)
        inside = np.maximum(inside, distance == 0)
        after = np.maximum(after, np.where(distance > 0, 1 - distance / 15, 0))
        before = np.maximum(before, np.where(distance < 0, 1 + distance / 45, 0))
    return {
        "asked_when": timed * question.asks_when,
        "day": inside,
        "day_after": after,
        "day_before": before,
    }
