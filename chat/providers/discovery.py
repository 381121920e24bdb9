"""Lists the models that this server can use, and tests one."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.request import urlopen

from django.conf import settings

from chat import providers
from chat.prompt.types import PromptMessage

log = logging.getLogger(__name__)

# A local Ollama answers at once. A page must not wait for one that is not running.
OLLAMA_TIMEOUT_S = 1.0
MAX_OLLAMA_MODELS = 20
MAX_RESPONSE_BYTES = 2**20
# A small and fast model of each provider. The project's settings can name another.
SUGGESTED_MODELS = {
    "openai-chat": "gpt-5-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile",
    "openrouter": "openai/gpt-5-mini",
}
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


def list_models_with_keys() -> Sequence[str]:
    """Return a suggested model of each provider whose key is in the environment."""
    return [f"{provider}:{SUGGESTED_MODELS[provider]}" for provider in settings.MODEL_KEYS]


def try_model(name: str) -> TrialResult:
    """Ask the model `name` to say hello."""
    try:
        provider = providers.get_provider(name, "test")
        completion = provider.complete([PromptMessage("user", TRIAL_PROMPT)], TRIAL_TOKENS)
    except providers.ProviderError as error:
        log.info("model_test_failed model=%s reason=%s", name, error)
        return TrialResult(trouble=str(error))
    return TrialResult(answer=completion.text.strip()[:MAX_ANSWER_CHARS])
