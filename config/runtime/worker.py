"""The worker processes of `manage.py up`, whose tasks run in threads."""

from collections.abc import Sequence

from django.conf import settings

from config.broker.scheduler import BeatStep
from config.celery import app
from config.runtime.threads import TaskPool


def work(name: str, queues: Sequence[str], with_beat: bool = False) -> None:
    """Run the tasks of `queues`, of each as many at a time as it has slots, until SIGTERM."""
    if with_beat:
        app.steps["worker"].add(BeatStep)
    worker = app.Worker(
        hostname=f"{name}@%h",
        pool_cls=TaskPool,
        concurrency=sum(settings.QUEUE_SLOTS[queue] for queue in queues),
        queues=queues,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    raise SystemExit(worker.exitcode)
