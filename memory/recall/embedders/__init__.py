"""Embedders: turn texts into vectors. To add one, write a module and add it to `create`."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class EmbedderError(Exception):
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


def get() -> Embedder:
    """Return the embedder of this server."""
    return create(settings.EMBEDDER, settings.EMBEDDING_DIMENSIONS)


def get_for_facts() -> Embedder:
    """Return the embedder for facts and for queries about them. If the server's embedder is the
    built-in one with static vectors, return the built-in sentence transformer instead.
    """
    if settings.EMBEDDER != "static":
        return get()
    from memory.recall.embedders.minilm import get_minilm_embedder

    return get_minilm_embedder()


@lru_cache(maxsize=4)
def create(name: str, dimensions: int) -> Embedder:
    """Return the embedder `name`. It is created once per process."""
    # Imported on demand, because each embedder needs large packages.
    if name == "static":
        from memory.recall.embedders.static import get_static_embedder

        return get_static_embedder()
    from memory.recall.embedders.remote import RemoteEmbedder

    return RemoteEmbedder(name, dimensions)
