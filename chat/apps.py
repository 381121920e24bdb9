from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat.conversations import titles  # noqa: F401  (connects its receiver)
