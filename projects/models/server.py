"""The server's models, which projects use if they do not choose a model."""

import asyncio
import time

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.core.models import IdModel

# The maximum time until a change on the Models page reaches all processes.
CACHE_S = 5.0
EXTRACTIVE = "extractive"


class ServerModels(IdModel):
    """The server's models that were set on the Models page. There is at most one row."""

    chat_model = models.CharField(_("chat model"), max_length=200, blank=True)
    system_model = models.CharField(_("model for summaries"), max_length=200, blank=True)
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    class Meta:
        verbose_name = _("models of the server")
        verbose_name_plural = _("models of the server")

    def __str__(self) -> str:
        return self.chat_model


# The time and the result of the last query.
_saved: tuple[float, tuple[str, str]] = (0.0, ("", ""))


def default_chat_model() -> str:
    """Return the default chat model. The environment takes precedence over the Models page."""
    chosen = "" if settings.HAS_CHAT_MODEL else _read()[0]
    return chosen or settings.CHAT_MODEL


def default_system_model() -> str:
    """Return the default model for summaries, or `extractive`."""
    if settings.HAS_SYSTEM_MODEL:
        return settings.SYSTEM_MODEL
    chosen_chat, chosen = ("", _read()[1]) if settings.HAS_CHAT_MODEL else _read()
    if chosen or not chosen_chat:
        return chosen or settings.SYSTEM_MODEL
    return EXTRACTIVE if chosen_chat == "demo" else chosen_chat


def save_defaults(chat_model: str, system_model: str) -> None:
    """Replace the server's models. An empty name means the default of the settings."""
    global _saved
    row = ServerModels.objects.first() or ServerModels()
    row.chat_model, row.system_model = chat_model, system_model
    row.save()
    # This process reads the row again at the next call.
    _saved = (0.0, ("", ""))


def _read() -> tuple[str, str]:
    """Return the stored models. In an event loop, which must not block, return the cached ones."""
    global _saved
    read_at, values = _saved
    if (not read_at or time.monotonic() - read_at > CACHE_S) and not _is_in_event_loop():
        row = ServerModels.objects.values_list("chat_model", "system_model").first()
        values = row or ("", "")
        _saved = (time.monotonic(), values)
    return values


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
