"""Start-up costs of a process: modules loaded before the first reply, and garbage collection.

`manage.py up` loads them once, before its processes fork. A web process that was started in another
way loads them in a thread after the first request, so that neither that reply nor other requests
wait for the second that this takes.

Garbage collection skips the objects that start-up loads, which stay for ever. With CPython's
defaults, a process with fifty concurrent replies spent an eighth of its time in collections, and
each full collection stopped it for up to 0.4 s.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread

log = logging.getLogger(__name__)

# New objects per collection of the youngest generation; CPython's default is 700.
# https://docs.python.org/3/library/gc.html#gc.set_threshold
GC_THRESHOLD = 10_000


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause collection while modules load, because little becomes garbage; then freeze."""
    gc.disable()
    try:
        yield
    finally:
        freeze_loaded_objects()


def freeze_loaded_objects() -> None:
    """Exclude all present objects from future collections, and enable collection."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()


@cache
def start() -> None:
    """Start the loading thread, at the first call."""
    Thread(target=load, name="preload", daemon=True).start()


@cache
def load() -> None:
    """Load everything that a first reply needs."""
    from config.celery import app
    from memory.recall import embedders
    from projects.core import token_counting

    try:
        embedders.get()
        token_counting.count("once")
        with app.connection_for_write() as broker:
            broker.get_transport_cls()
        # Importing it is slow, and calling it imports more modules.
        from chat.providers.warmup import load_client_code

        load_client_code()
        freeze_loaded_objects()
    except Exception:
        # If a part fails to load, the code that needs it reports the error.
        log.exception("preload_failed")
