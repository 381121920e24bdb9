"""The models that this server knows, and which of them a project may use.

They are read from the model lists that providers have sent (`chat.providers.discovery`), which are
stored in the database. This module does not call providers. `settings.PROJECT_MODELS` names it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from chat.models import ModelProvider, ProviderKind
from chat.providers import NOT_ALLOWED, is_in_environment
from projects.core.errors import InvalidInputError
from projects.models import Project, validate_model_name
from projects.models.server import EXTRACTIVE, default_chat_model, default_system_model

DEMO = "demo"
# A small and fast model of each provider. Users can choose others in the project's settings.
SUGGESTED_MODELS = {
    "openai-chat": "gpt-5-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile",
    "openrouter": "openai/gpt-5-mini",
}

# The end of a listed name that may be left out: a date, a number of the provider, or "latest".
_VERSION = re.compile(r"(?:-(?:\d{4}-\d\d-\d\d|\d{3,8}|latest)|:latest)$")

Choices = list[tuple[str, Any]]


class ModelNameError(InvalidInputError):
    """The server does not know the model, or the project is not permitted to use it."""

    default_code = "model_not_available"


@dataclass(frozen=True)
class KnownModel:
    """A model in a provider's list. None: unknown. Prices are in US dollars per million tokens."""

    name: str
    context: int | None = None
    vision: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    # False if the model does not accept a temperature.
    temperature: bool = True
    input_price: float | None = None
    output_price: float | None = None

    @classmethod
    def load(cls, provider: str, item: dict[str, Any]) -> "KnownModel":
        """Return a model from `ModelProvider.catalogue`, of this or an earlier version."""
        fields = {name: item[name] for name in cls.__dataclass_fields__ if name in item}
        return cls(**{**fields, "name": f"{provider}:{item['name']}"})

    @property
    def provider(self) -> str:
        return self.name.partition(":")[0]

    @property
    def details(self) -> str:
        """The known properties in one line, for users."""
        parts = []
        if self.context:
            size = f"{round(self.context / 1_000)}k" if self.context >= 1_000 else self.context
            parts.append(_("%(size)s tokens") % {"size": size})
        parts += [_("vision")] if self.vision else []
        parts += [_("tools")] if self.tools else []
        parts += [_("reasoning")] if self.reasoning else []
        if self.input_price is not None and self.output_price is not None:
            parts.append(f"${self.input_price:g} / ${self.output_price:g}")
        return " · ".join(parts)


def known_models() -> dict[str, KnownModel]:
    """Return all models by name, ordered by provider. Takes one query."""
    has_demo = settings.DEMO_MODEL_URL or settings.CHAT_MODEL == DEMO
    models = [KnownModel(DEMO)] if has_demo else []
    rows = {row.name: row for row in ModelProvider.objects.all()}
    for name in {**settings.MODEL_KEYS, **rows}:
        row = rows.get(name)
        if row is not None and not is_usable(row):
            continue
        listed = row.chat_models if row else []
        suggested = [{"name": SUGGESTED_MODELS[name]}] if name in settings.MODEL_KEYS else []
        models += [KnownModel.load(name, item) for item in listed or suggested]
    return {model.name: model for model in models}


def is_usable(row: ModelProvider) -> bool:
    """Return whether the models of `row` can be used: there is a key, or no key is needed."""
    return bool(row.encrypted_key) or row.kind == ProviderKind.OLLAMA or is_in_environment(row.name)


def models_for(project: Project) -> dict[str, KnownModel]:
    """Return the known models that `project` may use, and its chat model if it may use it."""
    known = known_models()
    used = {name: known.get(name, KnownModel(name)) for name in [project.chat_model_name] if name}
    return {name: it for name, it in (used | known).items() if project.allows_model(name)}


def select_choices(
    models: Mapping[str, KnownModel],
    current: str,
    is_for_summaries: bool = False,
    default: str | None = None,
) -> Choices:
    """Return the choices of a select, grouped by provider. `current` is included even if it is not
    in `models`.

    `default` is the label of the empty choice. By default it names the server's model.
    """
    if default is None:
        name = default_system_model() if is_for_summaries else default_chat_model()
        default = _("Server default: %(name)s") % {"name": name}
    first: Choices = [("", default)]
    if is_for_summaries:
        first.append((EXTRACTIVE, _("extractive (quotes, no model)")))
    if current and current not in models and current != EXTRACTIVE:
        first.append((current, current))
    return first + grouped(models.values())


def grouped(models: Iterable[KnownModel]) -> Choices:
    """Return the choices of `models`, grouped by provider after the demo model."""
    groups: dict[str, Choices] = {}
    for model in models:
        label = " · ".join(filter(None, [model.name, model.details]))
        groups.setdefault(model.provider, []).append((model.name, label))
    return [
        *(choice for name in groups if name == DEMO for choice in groups[name]),
        *((name, choices) for name, choices in groups.items() if name != DEMO),
    ]


def check_model(project: Project, name: str, field: str = "") -> None:
    """Raise `ModelNameError` if `name` is unknown or not permitted. An empty name and `extractive`
    are accepted.

    A name is unknown if its provider has sent a list that does not contain it. Any name of a
    provider without a list is accepted, and so is a listed name without its version, such as
    claude-haiku-4-5 or llama3.2.
    """
    if name in ("", EXTRACTIVE):
        return
    try:
        validate_model_name(name)
    except ValidationError as error:
        raise ModelNameError(error.messages[0], field=field) from error
    if not project.allows_model(name):
        raise ModelNameError(_(NOT_ALLOWED), code="model_not_allowed", field=field)
    if name == DEMO:
        return
    prefix, _colon, model = name.partition(":")
    prefix = "openai-chat" if prefix == "openai" else prefix
    row = ModelProvider.objects.filter(name=prefix).first()
    if row is None:
        if not is_in_environment(prefix) and not _is_known_provider(prefix):
            raise ModelNameError(
                _("There is no provider “%(name)s” on this server.") % {"name": prefix}, field=field
            )
        return
    names = {item["name"] for item in row.chat_models}
    unversioned = {_VERSION.sub("", it) for it in names}
    if names and model not in names | unversioned:
        raise ModelNameError(
            _("“%(provider)s” lists no model “%(name)s”. Choose one of its list.")
            % {"provider": prefix, "name": model},
            field=field,
        )


def _is_known_provider(prefix: str) -> bool:
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(prefix)
    except ValueError:
        return False
    except ImportError:
        # The package of the provider is not installed. The reply will report this.
        return True
    return True
