from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatConfig(AppConfig):
    name = "chat"
    verbose_name = _("Chats")

    def ready(self) -> None:
        from chat.conversations import titles  # noqa: F401  (connects its receiver)
