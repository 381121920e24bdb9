"""The heartbeat task of version 0.1, whose processes report in no other way."""

from celery import shared_task

from config.health import heartbeats


@shared_task(expires=60)
def heartbeat() -> None:
    """Record that beat sent this task and a worker ran it. Runs every twenty seconds."""
    heartbeats.record(["beat", "worker"])
