from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProjectsConfig(AppConfig):
    name = "projects"
    verbose_name = _("Projects")

    def ready(self) -> None:
        from projects import signal_handlers  # noqa: F401  (connects them)
