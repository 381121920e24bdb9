"""Which models could answer here: the server's own, those of an Ollama, those whose key is set."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.request import urlopen

from django.conf import settings

from chat import providers
from chat.prompt import Said

log = logging.getLogger(__name__)

# Seconds. An Ollama on this machine answers at once; nobody waits for one that is not there.
PATIENCE = 1.0
MOST_OLLAMA = 20
LONGEST_LIST = 2**20  # bytes
# One for each provider, small and quick: the name can be changed in the project's settings.
USUAL = {
    "openai-chat": "gpt-5-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile",
    "openrouter": "openai/gpt-5-mini",
}
QUESTION = "Say hello in one short sentence."
MOST_TOKENS = 400
SHOWN = 300  # characters


@dataclass(frozen=True)
class Tried:
    """What came of asking a model something: its answer, or why there is none."""

    answer: str = ""
    trouble: str = ""


def ollama() -> list[str]:
    """The models of the Ollama at `settings.OLLAMA_URL`; none where there is none."""
    try:
        listed = f"{settings.OLLAMA_URL.removesuffix('/v1')}/api/tags"
        with urlopen(listed, timeout=PATIENCE) as answer:
            told = json.loads(answer.read(LONGEST_LIST))
        named = [model["name"] for model in told["models"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return []
    return [f"ollama:{name}" for name in named if isinstance(name, str)][:MOST_OLLAMA]


def with_keys() -> Sequence[str]:
    """A usual model of each provider whose key is in the environment."""
    return [f"{provider}:{USUAL[provider]}" for provider in settings.MODEL_KEYS]


def ask(name: str) -> Tried:
    """Asks the model `name` to say hello."""
    try:
        said = [Said("user", QUESTION)]
        text = providers.get(name, "trial").complete(said, MOST_TOKENS).text.strip()
    except providers.ProviderError as error:
        log.info("model_tried model=%s reason=%s", name, error)
        return Tried(trouble=error.reason)
    return Tried(answer=text[:SHOWN])
