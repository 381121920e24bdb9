"""Lists the models that this server can use, and tests models and servers."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.request import urlopen

from django.conf import settings
from django.utils.translation import gettext as _

from chat import providers
from chat.models import ModelProvider
from chat.prompt.types import PromptMessage
from chat.providers.catalogue import SUGGESTED_MODELS
from projects.core import outbound_http
from projects.core.errors import InvalidInputError
from projects.core.outbound_http import OutboundFailure

log = logging.getLogger(__name__)

# A local Ollama answers at once. A page must not wait for one that is not running.
OLLAMA_TIMEOUT_S = 1.0
MAX_OLLAMA_MODELS = 20
MAX_RESPONSE_BYTES = 2**20
MAX_LISTED_MODELS = 500
MAX_LIST_BYTES = 8 * 2**20
MAX_MODELS = 1_000
MAX_NAME_CHARS = 150
# Keys of a model's context size in the lists of OpenRouter, Groq, Mistral and vLLM.
CONTEXT_KEYS = ("context_length", "context_window", "max_context_length", "max_model_len")
TRIAL_PROMPT = "Say hello in one short sentence."
TRIAL_TOKENS = 400
MAX_ANSWER_CHARS = 300


@dataclass(frozen=True)
class TrialResult:
    """The answer of a model that was tested, or the error."""

    answer: str = ""
    trouble: str = ""


def list_ollama_models() -> list[str]:
    """Return the models of the Ollama server at `settings.OLLAMA_URL`; none if it does not run."""
    try:
        url = f"{settings.OLLAMA_URL.removesuffix('/v1')}/api/tags"
        with urlopen(url, timeout=OLLAMA_TIMEOUT_S) as response:
            payload = json.loads(response.read(MAX_RESPONSE_BYTES))
        names = [model["name"] for model in payload["models"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return []
    return [f"ollama:{name}" for name in names if isinstance(name, str)][:MAX_OLLAMA_MODELS]


def list_models_with_keys(is_complete: bool = False) -> Sequence[str]:
    """Return one model of each provider whose key is in the environment or on the Models page.

    With `is_complete`, all models follow that the providers of the Models page list.
    """
    names = [f"{provider}:{SUGGESTED_MODELS[provider]}" for provider in settings.MODEL_KEYS]
    listed = {item.name: item.model_names for item in ModelProvider.objects.all()}
    for provider, models in listed.items():
        suggested = f"{provider}:{SUGGESTED_MODELS.get(provider, '')}"
        names += [suggested] if suggested in models else models[:1]
    if is_complete:
        names += [name for models in listed.values() for name in models]
    return list(dict.fromkeys(names))[:MAX_LISTED_MODELS]


def try_model(name: str) -> TrialResult:
    """Ask the model `name` to say hello."""
    try:
        provider = providers.get_provider(name, "test")
        completion = provider.complete([PromptMessage("user", TRIAL_PROMPT)], TRIAL_TOKENS)
    except providers.ProviderError as error:
        log.info("model_test_failed model=%s reason=%s", name, error)
        return TrialResult(trouble=str(error))
    return TrialResult(answer=completion.text.strip()[:MAX_ANSWER_CHARS])


class ProviderCheckError(InvalidInputError):
    """The provider could not be reached or rejected the key; the message says what to do."""


def check_server(server: providers.ModelServer) -> list[dict[str, Any]]:
    """Test the key, and return the models that the server lists, with their context size if known.

    Raises `ProviderCheckError`.
    """
    if server.kind == "openrouter":
        # Its list needs no key.
        _get(server, "/key")
    path = "/v1/models?limit=1000" if server.kind == "anthropic" else "/models"
    try:
        items = json.loads(_get(server, path))["data"]
        names = {str(item["id"]).removeprefix("models/"): item for item in items}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProviderCheckError(
            _("The server sent no list of models. The address usually ends in /v1.")
        ) from error
    return [
        {"name": name, "context": _context_size(item)}
        for name, item in sorted(names.items())[:MAX_MODELS]
        if len(name) <= MAX_NAME_CHARS and name.isprintable()
    ]


def _context_size(item: dict[str, Any]) -> int | None:
    sizes = [item[key] for key in CONTEXT_KEYS if isinstance(item.get(key), int)]
    return sizes[0] if sizes else None


def _get(server: providers.ModelServer, path: str) -> bytes:
    headers = {"Authorization": f"Bearer {server.key}"}
    if server.kind == "anthropic":
        headers = {"x-api-key": server.key, "anthropic-version": "2023-06-01"}
    url = f"{server.address.rstrip('/')}{path}"
    try:
        response = outbound_http.request("GET", url, headers=headers, max_bytes=MAX_LIST_BYTES)
    except outbound_http.OutboundError as error:
        raise ProviderCheckError(_advice(error)) from error
    if response.status in (401, 403):
        raise ProviderCheckError(_("The provider rejected the key. Copy it again."))
    if response.status == 404:
        raise ProviderCheckError(_("There is nothing at this address. It usually ends in /v1."))
    if response.status != 200:
        raise ProviderCheckError(
            _("The server answered with the status %(status)s. Try again later.")
            % {"status": response.status}
        )
    return response.body


def _advice(error: outbound_http.OutboundError) -> str:
    if error.reason == OutboundFailure.INSIDE:
        return _("%(reason)s To allow it, add it to STRATA_OUTBOUND_ALLOW and restart Strata.") % {
            "reason": error
        }
    return _("%(reason)s Check the address.") % {"reason": error}
