"""Start-up of a process: loads modules before the first reply, and configures garbage collection.

`manage.py up` loads the modules once, before its processes fork. A web process that was started in
another way loads them in a thread after its first request. Loading takes a second, for which
neither that reply nor other requests should wait.

Garbage collection skips the objects that are loaded at the start, because they are never freed.
With CPython's defaults, a process with fifty concurrent replies spent an eighth of its time on
garbage collection, and each full collection stopped it for up to 0.4 s.
"""

import gc
import logging
from functools import cache
from threading import Thread

from django.conf import settings
from django.utils.module_loading import import_string

log = logging.getLogger(__name__)

# The number of new objects after which the youngest generation is collected. The default is 700.
# https://docs.python.org/3/library/gc.html#gc.set_threshold
GC_THRESHOLD = 10_000


def freeze_loaded_objects() -> None:
    """Exclude all existing objects from garbage collection, and enable it."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()


@cache
def start() -> None:
    """Start the loading thread on the first call."""
    Thread(target=load, name="preload", daemon=True).start()


@cache
def load() -> None:
    """Load everything that a first reply needs."""
    from chat import providers
    from chat.prompt import tools
    from config.celery import app
    from memory.recall import embedders, wordpieces
    from projects.core import token_counting
    from projects.core.outbound_http import trusted_certificates

    try:
        embedders.get()
        wordpieces.query_pieces("once")
        token_counting.count("once")
        for path in settings.CHAT_PROMPT_SECTIONS:
            import_string(path)
        for tool in tools.all_tools().values():
            tool.tokens  # noqa: B018  # counted once
        trusted_certificates()
        providers.accepts_own_tools(settings.CHAT_MODEL)
        with app.connection_for_write() as broker:
            broker.get_transport_cls()
        # Imported on demand: the import is slow, and calling the function imports more modules.
        from chat.providers.warmup import load_client_code

        load_client_code()
        freeze_loaded_objects()
    except Exception:
        # Only log the error. If a module cannot be loaded, the code that needs it raises it again.
        log.exception("preload_failed")
