from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = _("Memory")

    def ready(self) -> None:
        from memory import (
            signal_handlers,  # noqa: F401  (connects them)
            webhook_events,  # noqa: F401  (connects its receivers)
        )
