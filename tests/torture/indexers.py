"""Indexing in processes of their own, which may be killed at any instant."""

import os
from multiprocessing.synchronize import Event

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.db import connection

from memory.recall import embedders, indexing, reindexing
from tests.memory.hash_embedder import HashEmbedder


def index(name: str, begun: Event) -> None:
    """Indexes all that is behind, a few sessions at a time."""
    os.environ["PGAPPNAME"] = name
    indexing.BATCH_SIZE = 5
    _get_ready()
    begun.set()
    indexing.catch_up()


def embed(name: str, begun: Event, embedder: str) -> None:
    """Gives every chunk its vector of `embedder` in place of those of others."""
    os.environ["PGAPPNAME"] = name
    if embedder == "hash":
        embedders.get = HashEmbedder
    reindexing.BATCH_SIZE = 40
    _get_ready()
    begun.set()
    reindexing.replace_vectors(None, None, lambda step: None)


def _get_ready() -> None:
    """What takes its time and is not what is to be killed."""
    embedders.get().embed_documents(["Good morning."])
    connection.ensure_connection()
