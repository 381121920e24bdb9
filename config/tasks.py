"""Signs of life: the beat asks, a worker answers, both are noted."""

from celery import shared_task
from django.db.models.functions import Now

from config.models import Heartbeat


@shared_task(expires=60)
def heartbeat() -> None:
    """Notes that the beat sent this and that a worker ran it. Runs every twenty seconds."""
    for part in ("beat", "worker"):
        Heartbeat.objects.update_or_create(part=part, defaults={"seen_at": Now()})
