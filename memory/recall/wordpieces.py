"""Texts as word pieces of the built-in model: small to store, and fast to compare word by word.

A chunk stores the number of capitalised names in its text and then the ids of its word pieces, in
order, as 16-bit integers. They are used with every embedder: vectors compare whole texts, word
pieces show which words of a query a text contains, exactly or by a similar word.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.static import get_static_embedder

Ids = NDArray[np.int64]

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text())

# A capitalised word inside a sentence is usually a name.
_CAPITALISED = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][a-zA-Z]+")


class PieceKind(IntFlag):
    """Flags of a word piece that do not depend on the words around it."""

    STOP_WORD = 1
    QUESTION_MARK = 2
    TIME = 4
    FIRST_PERSON = 8


@dataclass(frozen=True)
class Vocabulary:
    """Arrays by piece id: the flags, the vectors as the model stores them, and their lengths."""

    kinds: NDArray[np.uint8]
    vectors: NDArray[np.int8]
    weights: NDArray[np.float32]

    def unit_vectors(self, pieces: Ids) -> NDArray[np.float32]:
        """Return the vectors of `pieces` at unit length. A vector of length zero stays zero."""
        vectors = self.vectors[pieces].astype(np.float32)
        vectors /= np.maximum(self.weights[pieces], 1e-12)[:, None]
        return vectors


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """Return the vocabulary of the built-in model, loaded once."""
    model = get_static_embedder()
    kinds = np.zeros(len(model.vocabulary), np.uint8)
    ids = {piece: index for index, piece in enumerate(model.vocabulary)}
    for kind in PieceKind:
        for word in WORDS["pieces"][str(kind.name).lower()].split():
            if word in ids:
                kinds[ids[word]] |= kind
    for piece, index in ids.items():
        bare = piece.removeprefix("##")
        if not bare.isalnum():
            kinds[index] |= PieceKind.STOP_WORD
        elif bare.isdigit() and len(bare) == 4 and bare.startswith(("19", "20")):
            kinds[index] |= PieceKind.TIME
    squares = np.einsum("ij,ij->i", model.table, model.table, dtype=np.int32)
    return Vocabulary(kinds, model.table, np.sqrt(squares).astype(np.float32))


def pack(texts: Sequence[str]) -> list[bytes]:
    """Return the stored form of each text."""
    return [
        np.asarray([len(_CAPITALISED.findall(text)), *ids], "<u2").tobytes()
        for text, ids in zip(texts, get_static_embedder().piece_ids(texts), strict=True)
    ]


def unpack(packed: Sequence[bytes]) -> tuple[NDArray[np.uint16], Ids, Ids]:
    """Return the numbers of names by text, all ids in one array, and the numbers of ids by text."""
    sizes = np.array([len(text) // 2 for text in packed], np.int64)
    values = np.frombuffer(b"".join(packed), "<u2")
    heads = np.cumsum(sizes) - sizes
    is_id = np.ones(len(values), bool)
    is_id[heads] = False
    return values[heads], values[is_id].astype(np.int64), sizes - 1


def query_pieces(text: str) -> Ids:
    """Return the distinct pieces of a query, without stop words."""
    [ids] = get_static_embedder().piece_ids([text])
    kinds = vocabulary().kinds
    return np.unique(ids[(kinds[ids] & PieceKind.STOP_WORD) == 0])
