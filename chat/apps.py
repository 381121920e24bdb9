from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        from chat import attachments, imports  # noqa: F401  (connect what removes their files)
