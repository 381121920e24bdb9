"""Background tasks of projects."""

from celery import shared_task
from django.conf import settings

from projects import invitations, rate_limits
from projects.accounts import browser_sessions
from projects.core.database import fetch
from projects.models import IdempotencyKey


@shared_task
def clear() -> None:
    """Delete expired rows. Runs every hour."""
    IdempotencyKey.objects.expired().delete()
    rate_limits.delete_expired()
    invitations.delete_expired()
    browser_sessions.delete_expired()
    # The cache counts sign-in attempts. Django deletes expired rows only when the table is full.
    if not settings.CACHE_URL:
        fetch("DELETE FROM projects_cache WHERE expires < statement_timestamp()")
