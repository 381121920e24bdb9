"""Strata's settings, and the parts that concern the whole server."""

__version__ = "0.2.0"

from config.celery import app as celery_app

__all__ = ["celery_app"]
