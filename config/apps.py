from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config.backup import marker

        pre_migrate.connect(marker.refuse)
