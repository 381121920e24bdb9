"""What the first message and its reply need and take two seconds to load: loaded once a process
answers anything, so that neither who says it waits, nor those who ask meanwhile.
"""

import logging
from functools import cache
from threading import Thread

log = logging.getLogger(__name__)


@cache
def warm() -> None:
    """Begins to load it, in a thread and at the first call only."""
    Thread(target=_load, name="warming", daemon=True).start()


def _load() -> None:
    from chat import tokens
    from config import garbage
    from config.celery import app
    from memory.recall import embedders

    try:
        embedders.get()
        tokens.count("once")
        with app.connection_for_write() as broker:
            broker.get_transport_cls()
        # Imports what is slowest, and imports more when it is called.
        from chat.providers.rehearsal import rehearse

        rehearse()
        garbage.keep()
    except Exception:
        # What cannot be loaded is told to whoever needs it.
        log.exception("warming_failed")
