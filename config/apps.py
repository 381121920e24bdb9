from django.apps import AppConfig
from django.conf import settings

from config.metrics import processes

# Before any app makes a metric.
if settings.METRICS_DIR:
    processes.share(settings.METRICS_DIR)


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config.metrics import tasks

        tasks.connect()
        if settings.TRACES:
            from config.tracing import trace_tasks

            trace_tasks()
