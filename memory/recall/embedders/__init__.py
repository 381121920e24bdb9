"""Texts as vectors. An embedder is a module here and a line in `get`."""

from functools import lru_cache

from django.conf import settings

from memory.recall.embedders.base import Embedder, EmbedderError

__all__ = ["Embedder", "EmbedderError", "get"]


def get() -> Embedder:
    """The embedder that is set for this server."""
    return _get(settings.EMBEDDER, settings.EMBEDDING_DIMENSIONS)


@lru_cache(maxsize=4)
def _get(name: str, dimensions: int) -> Embedder:
    # Each brings much along that the others do without.
    if name == "static":
        from memory.recall.embedders.static import static

        return static()
    if name == "hash":
        from memory.recall.embedders.hash import HashEmbedder

        return HashEmbedder(dimensions or 64)
    from memory.recall.embedders.remote import RemoteEmbedder

    return RemoteEmbedder(name, dimensions)
