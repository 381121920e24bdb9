"""The heartbeat task of version 0.1, whose processes have no other heartbeats."""

from celery import shared_task

from config.health import heartbeats


@shared_task(expires=60)
def heartbeat() -> None:
    """Record that beat has sent this task and a worker has run it. Runs every twenty seconds."""
    heartbeats.record(["beat", "worker"])
