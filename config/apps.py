from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import pre_migrate

from config.metrics import shared

# Before any app makes a metric.
if settings.METRICS_DIR:
    shared.share(settings.METRICS_DIR)


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import garbage
        from config.backup import marker
        from config.metrics import tasks

        tasks.connect()
        if settings.TRACES:
            from config.tracing import trace_tasks

            trace_tasks()
        pre_migrate.connect(marker.refuse)
        garbage.keep()
