from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat import attachments, imports, titling  # noqa: F401  (connects their receivers)
