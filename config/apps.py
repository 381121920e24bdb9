import os

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.translation import gettext_lazy as _

from config.observability.metrics import multiprocess

# Set before any app creates a metric.
if settings.METRICS_DIR:
    # prometheus_client reads this environment variable.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(settings.METRICS_DIR)
    multiprocess.share(settings.METRICS_DIR)


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = _("Server")

    def ready(self) -> None:
        from config import beat_schedule
        from config.backup import restore_marker
        from config.observability.metrics import celery
        from config.runtime import preload

        celery.connect()
        if settings.TRACES:
            from config.observability.tracing import trace_tasks

            trace_tasks()
        pre_migrate.connect(restore_marker.block_migration)
        post_migrate.connect(beat_schedule.add_missing_tasks, sender=self)
        preload.freeze_loaded_objects()
