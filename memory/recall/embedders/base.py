"""The interface of embedders."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from projects.core.errors import UnavailableError

Matrix = NDArray[np.float32]


class EmbedderError(UnavailableError):
    """The texts could not be embedded. The message is a reason for users."""


class Embedder(Protocol):
    """Converts texts to vectors of unit length, as rows of a matrix.

    `name` is stored with each vector, because vectors of different embedders are not comparable.
    `is_local` is true if no other server is called.
    """

    name: str
    dimensions: int
    is_local: bool

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one row for each text. Raises EmbedderError."""

    def embed_query(self, text: str) -> Matrix:
        """Return one vector, as a one-dimensional array. Raises EmbedderError."""


def normalise(rows: Matrix) -> Matrix:
    """Return the rows scaled to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
