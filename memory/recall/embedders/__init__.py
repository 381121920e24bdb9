"""Embedders. To add one, write a module here and add a line to `create`."""

from functools import lru_cache

from django.conf import settings

from memory.recall.embedders.base import Embedder, EmbedderError

__all__ = ["Embedder", "EmbedderError", "get"]


def get() -> Embedder:
    """Return the embedder of this server."""
    return create(settings.EMBEDDER, settings.EMBEDDING_DIMENSIONS)


@lru_cache(maxsize=4)
def create(name: str, dimensions: int) -> Embedder:
    """Return the embedder with this name, created once."""
    # Imported here, because each needs large packages that the others do not.
    if name == "static":
        from memory.recall.embedders.static import get_static_embedder

        return get_static_embedder()
    from memory.recall.embedders.remote import RemoteEmbedder

    return RemoteEmbedder(name, dimensions)
