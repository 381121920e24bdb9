from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"

    def ready(self) -> None:
        from memory import signal_handlers  # noqa: F401  (connects them)
        from memory.webhooks import events  # noqa: F401  (connects its receivers)
