"""Embedders. To add one, write a module here and add a line to `create`."""

from functools import lru_cache

from django.conf import settings

from memory.recall.embedders.base import Embedder, EmbedderError

__all__ = ["Embedder", "EmbedderError", "get", "get_for_facts"]


def get() -> Embedder:
    """Return the embedder of this server."""
    return create(settings.EMBEDDER, settings.EMBEDDING_DIMENSIONS)


def get_for_facts() -> Embedder:
    """Return the embedder of facts and of the queries for them: the server's, unless that is the
    built-in one of static vectors.
    """
    if settings.EMBEDDER != "static":
        return get()
    from memory.recall.embedders.minilm import get_minilm_embedder

    return get_minilm_embedder()


@lru_cache(maxsize=4)
def create(name: str, dimensions: int) -> Embedder:
    """Return the embedder with this name, created once."""
    # Imported here, because each needs large packages that the others do not.
    if name == "static":
        from memory.recall.embedders.static import get_static_embedder

        return get_static_embedder()
    from memory.recall.embedders.remote import RemoteEmbedder

    return RemoteEmbedder(name, dimensions)
