"""Embedders: turn texts into vectors. To add one, write a module and add it to `create`."""

from functools import lru_cache

from django.conf import settings

from memory.recall.embedders.base import Embedder, EmbedderError

__all__ = ["Embedder", "EmbedderError", "get", "get_for_facts"]


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
