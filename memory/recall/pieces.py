"""Texts as word pieces of the built-in model: small, and quick to compare word by word.

Beside a chunk stand the ids of its pieces, in order, two bytes each, after the number of names in
it. They serve every embedder: what they add to its vectors is which words of a question are met,
by themselves or by a neighbour in meaning.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.static import static

Ids = NDArray[np.int64]

# A word with a capital inside a sentence is mostly a name.
_CAPITALS = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][a-zA-Z]+")


class Kind(IntFlag):
    """What a piece tells without the words around it."""

    EMPTY = 1
    ASKS = 2
    TIME = 4
    SELF = 8
    OTHER = 16


_WORDS: dict[Kind, str] = {
    # Words that say nothing about what a text is about.
    Kind.EMPTY: (
        "a an the of to in on at for and or is are was were be been do does did has have had what "
        "when where who whom which why how with by from as that this it its his her their he she "
        "they them him s t would could can will may might about"
    ),
    Kind.TIME: (
        "yesterday today tomorrow tonight last next ago since week weeks weekend weekends month "
        "months year years day days monday tuesday wednesday thursday friday saturday sunday "
        "january february march april june july august september october november december "
        "recently"
    ),
    Kind.SELF: "i my me mine we our us myself",
    Kind.OTHER: "you your yours",
    Kind.ASKS: "?",
}


@dataclass(frozen=True)
class Vocabulary:
    """The pieces by their ids: what they tell, and their directions, of length one."""

    kinds: NDArray[np.uint8]
    units: NDArray[np.float32]
    weights: NDArray[np.float32]


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    model = static()
    kinds = np.zeros(len(model.vocabulary), np.uint8)
    known = {piece: place for place, piece in enumerate(model.vocabulary)}
    for kind, words in _WORDS.items():
        for word in words.split():
            if word in known:
                kinds[known[word]] |= kind
    for piece, place in known.items():
        bare = piece.removeprefix("##")
        if not bare.isalnum():
            kinds[place] |= Kind.EMPTY
        elif bare.isdigit() and len(bare) == 4 and bare.startswith(("19", "20")):
            kinds[place] |= Kind.TIME
    lengths = np.linalg.norm(model.table.astype(np.float32), axis=1)
    return Vocabulary(kinds, model.units, lengths.astype(np.float32))


def pack(texts: Sequence[str]) -> list[bytes]:
    """What is kept of each text."""
    return [
        np.asarray([len(_CAPITALS.findall(text)), *ids], "<u2").tobytes()
        for text, ids in zip(texts, static().pieces(texts), strict=True)
    ]


def unpack(packed: Sequence[bytes]) -> tuple[NDArray[np.uint16], Ids, Ids]:
    """What was packed, one text after the other: the names in each, all ids, and the number of
    ids of each.
    """
    sizes = np.array([len(one) // 2 for one in packed], np.int64)
    everything = np.frombuffer(b"".join(packed), "<u2")
    heads = np.cumsum(sizes) - sizes
    is_id = np.ones(len(everything), bool)
    is_id[heads] = False
    return everything[heads], everything[is_id].astype(np.int64), sizes - 1


def of_query(text: str) -> Ids:
    """The pieces of a question that tell what it is about, each once."""
    [ids] = static().pieces([text])
    kinds = vocabulary().kinds
    return np.unique(ids[(kinds[ids] & Kind.EMPTY) == 0])
