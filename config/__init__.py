"""Strata's settings, and what the server as a whole needs."""

__version__ = "0.2.0"

from config.celery import app as celery_app

__all__ = ["celery_app"]
