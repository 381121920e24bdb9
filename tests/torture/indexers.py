"""Indexing in processes of their own, which may be killed at any instant."""

import os
from multiprocessing.synchronize import Event

from tests.torture import ready  # noqa: F401

# isort: split
from django.conf import settings

from memory.recall import indexing, reindexing


def index(name: str, begun: Event) -> None:
    """Indexes all that is behind, a few sessions at a time."""
    os.environ["PGAPPNAME"] = name
    indexing.BATCH = 5
    begun.set()
    indexing.catch_up()


def embed(name: str, begun: Event, embedder: str) -> None:
    """Gives every chunk its vector of `embedder` in place of those of others."""
    os.environ["PGAPPNAME"] = name
    settings.EMBEDDER = embedder
    reindexing.BATCH = 40
    begun.set()
    reindexing.embed(None, None, lambda step: None)
