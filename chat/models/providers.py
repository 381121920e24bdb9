"""Model providers, with their keys, that a server administrator added on the Models page."""

import re
from functools import cached_property
from typing import Any

from cryptography.fernet import InvalidToken
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.core.encryption import cipher
from projects.models import IdModel

PURPOSE = "strata-providers"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class ProviderKind(models.TextChoices):
    """The kind of a provider. The values are pydantic-ai's prefixes of model names, except
    `compatible`.
    """

    OPENAI = "openai-chat", "OpenAI"
    ANTHROPIC = "anthropic", "Anthropic"
    OPENROUTER = "openrouter", "OpenRouter"
    GOOGLE = "google", "Google"
    MISTRAL = "mistral", "Mistral"
    GROQ = "groq", "Groq"
    OLLAMA = "ollama", "Ollama"
    COMPATIBLE = "compatible", _("OpenAI-compatible server")


def validate_provider_name(name: str) -> None:
    """Raise ValidationError if the name is too long, malformed or reserved."""
    if not _NAME.fullmatch(name):
        raise ValidationError(_("Use lower-case letters, digits and hyphens."))
    if name in {*ProviderKind.values, "openai", "ollama", "demo", "extractive"}:
        raise ValidationError(_("This name is reserved."))


class ModelProvider(IdModel):
    """A provider and its key. Its models are named `name:model`."""

    name = models.CharField(_("name"), max_length=40, unique=True)
    kind = models.CharField(_("kind"), max_length=20, choices=ProviderKind.choices)
    address = models.CharField(
        _("address"),
        max_length=2_000,
        blank=True,
        help_text=_("Of an OpenAI-compatible server, with its /v1."),
    )
    encrypted_key = models.TextField(
        _("encrypted key"),
        blank=True,
        editable=False,
        help_text="Empty for Ollama, and for a provider whose key is in the environment only.",
    )
    catalogue = models.JSONField(
        _("models"),
        default=list,
        editable=False,
        help_text=_("The models of the provider, with the known properties of each."),
    )
    checked_at = models.DateTimeField(_("checked at"), null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        ordering = ("name",)
        verbose_name = _("model provider")
        verbose_name_plural = _("model providers")

    def __str__(self) -> str:
        return self.name

    def set_key(self, key: str) -> None:
        self.encrypted_key = cipher(PURPOSE).encrypt(key.encode()).decode()
        self.__dict__.pop("key", None)

    @property
    def chat_models(self) -> list[dict[str, Any]]:
        """The items of `catalogue`, without models that Ollama lists but that only embed text."""
        return [item for item in self.catalogue if item.get("chats", True)]

    @cached_property
    def key(self) -> str | None:
        """The key; None without a key, or if the server's secret key has changed since it was
        saved.
        """
        try:
            return cipher(PURPOSE).decrypt(self.encrypted_key.encode()).decode()
        except InvalidToken:
            return None
