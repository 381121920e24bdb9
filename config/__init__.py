"""Strata's settings, and the parts that concern the whole server."""

import gc

__version__ = "0.2.0"

# Little becomes garbage while modules load, and collections would take a fifth of the processor
# time of a start. `ConfigConfig.ready` enables them again.
gc.disable()

from config.celery import app as celery_app  # noqa: E402  # without collections

__all__ = ["celery_app"]
