"""Chat's work in the background."""

from celery import shared_task

from chat import streams


@shared_task
def sweep_interrupted() -> None:
    """Finds replies whose process died. Runs every half minute."""
    streams.sweep_interrupted()
