"""Signs of life of 0.1, whose processes have no others: the beat asks, a worker answers."""

from celery import shared_task

from config import signs


@shared_task(expires=60)
def heartbeat() -> None:
    """Notes that the beat sent this and that a worker ran it. Runs every twenty seconds."""
    signs.note(["beat", "worker"])
