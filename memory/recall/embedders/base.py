"""What an embedder offers."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class EmbedderError(Exception):
    """The texts could not be embedded; the text says why, for people."""


class Embedder(Protocol):
    """Texts become vectors of unit length, as rows of a matrix.

    `name` stands beside each vector: another name is another space. One that `is_here` waits for no
    server.
    """

    name: str
    dimensions: int
    is_here: bool

    def documents(self, texts: Sequence[str]) -> Matrix:
        """Raises EmbedderError."""

    def query(self, text: str) -> Matrix:
        """One vector, without an axis for the text. Raises EmbedderError."""


def unit(rows: Matrix) -> Matrix:
    """The rows scaled to length one; what has none stays zero."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
