"""Embedders: turn texts into vectors. To add one, write a module and add it to `create`."""

import logging
from functools import lru_cache
from uuid import UUID

from django.conf import settings

from chat.providers.booking import Payer, embeddings_of
from memory.recall.embedders.base import Embedder, EmbedderError, Matrix

__all__ = ["Embedder", "EmbedderError", "get", "get_for_facts", "query_vector"]

log = logging.getLogger(__name__)


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


def query_vector(embedder: Embedder, project: UUID, payer: Payer, query: str) -> Matrix | None:
    """Return the vector of `query`, booked on `payer`. Return None if the embedder fails, or
    has a vector for no word of the query: the search then uses words only.
    """
    try:
        with embeddings_of(project, payer):
            vector = embedder.embed_query(query)
    except EmbedderError as error:
        log.warning("recall_without_vectors embedder=%s reason=%s", embedder.name, error)
        return None
    return vector if vector.any() else None
