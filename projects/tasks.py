"""Projects' work in the background."""

from celery import shared_task

from projects import idempotency, invitations, throttling
from projects.accounts import limits, visits


@shared_task
def clear() -> None:
    """Removes what is kept for a while only. Runs every hour."""
    idempotency.clear()
    throttling.clear()
    invitations.clear()
    limits.clear()
    visits.clear()
