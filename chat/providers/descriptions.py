"""Properties of listed models: context size, abilities and price.

They are taken from the provider's list, or else from `genai-prices` and pydantic-ai's profiles.
This module sends no requests.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal, DecimalException
from functools import cache
from typing import Any

from chat.providers.prices import LISTED_PROVIDERS

# The keys of the context size in the model lists of OpenRouter, Groq, Mistral, vLLM and Anthropic.
CONTEXT_KEYS = (
    *("context_length", "context_window", "max_context_length", "max_model_len"),
    "max_input_tokens",
)
# A number that could not be shown would make every page with a list of models fail.
MAX_CONTEXT = 10**9
# Parts of the names of models that are not chat models.
NO_CHAT = re.compile(
    "embed|whisper|tts|dall-e|moderation|transcribe|realtime|gpt-image|imagen|veo-|sora|-ocr|-guard"
)
MILLION = Decimal(1_000_000)


def chats(name: str) -> bool:
    return not NO_CHAT.search(name.lower())


def describe(kind: str, name: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `catalogue.KnownModel` for an item of a provider's list."""
    listed = _from_list(item)
    prices = _from_prices(kind, name)
    profile = _from_profile(kind, name)
    fields = {}
    for field in ("context", "vision", "tools", "reasoning", "input_price", "output_price"):
        values = (source.get(field) for source in (listed, prices, profile))
        fields[field] = next((value for value in values if value is not None), None)
    temperature = listed.get("temperature")
    if temperature is None:
        temperature = profile.get("temperature", True)
    return {"name": name, "temperature": temperature, **fields}


def _from_list(item: dict[str, Any]) -> dict[str, Any]:
    """Return the properties in lists of OpenRouter, Mistral and Ollama; else the context size."""
    values = (item.get(key) for key in CONTEXT_KEYS)
    sizes = [it for it in values if isinstance(it, int) and 0 < it < MAX_CONTEXT]
    fields: dict[str, Any] = {"context": sizes[0] if sizes else None}
    parameters = item.get("supported_parameters")
    if isinstance(parameters, list):
        fields |= {
            "tools": "tools" in parameters,
            "reasoning": "reasoning" in parameters,
            "temperature": "temperature" in parameters,
        }
    modalities = _dict(item, "architecture").get("input_modalities")
    if isinstance(modalities, list):
        fields["vision"] = "image" in modalities
    abilities = item.get("capabilities")
    if isinstance(abilities, list):
        fields |= {
            "vision": "vision" in abilities,
            "tools": "tools" in abilities,
            "reasoning": "thinking" in abilities,
        }
    elif isinstance(abilities, dict):
        names = {"vision": "vision", "tools": "function_calling"}
        fields |= {
            field: abilities[key] is True for field, key in names.items() if key in abilities
        }
    pricing = _dict(item, "pricing")
    fields["input_price"] = _per_million(pricing.get("prompt"))
    fields["output_price"] = _per_million(pricing.get("completion"))
    return fields


def _dict(item: dict[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _per_million(price: object) -> float | None:
    """Return the price per million tokens, from the price per token; None if it is not a price."""
    try:
        value = Decimal(str(price)) * MILLION
    except DecimalException:
        return None
    return float(value) if value.is_finite() and 0 <= value < MILLION else None


def _from_prices(kind: str, name: str) -> dict[str, Any]:
    provider = _priced_providers().get(LISTED_PROVIDERS.get(kind, ""))
    info = provider and provider.find_model(name)
    if not info:
        return {}
    prices = info.get_prices(datetime.now(UTC))
    return {
        "context": info.context_window,
        "input_price": _price(prices.input_mtok),
        "output_price": _price(prices.output_mtok),
    }


@cache
def _priced_providers() -> dict[str, Any]:
    from genai_prices.data_snapshot import get_snapshot

    return {provider.id: provider for provider in get_snapshot().providers}


def _price(price: Any) -> float | None:
    """Return a price. If there are several tiers, return the lowest."""
    price = getattr(price, "base", price)
    return None if price is None else float(price)


def _from_profile(kind: str, name: str) -> dict[str, Any]:
    """Return the properties in pydantic-ai's profile of a model of OpenAI, Anthropic or Google."""
    if kind == "google":
        from pydantic_ai.profiles.google import google_model_profile

        profile: Any = google_model_profile(name) or {}
        abilities = {"vision": name.startswith("gemini") or None}
    elif kind in ("openai-chat", "anthropic"):
        profile = _model_of(kind, name).profile
        abilities = {"vision": profile.get("supports_image_input")}
    else:
        return {}
    # OpenAI's models that always reason do not accept a temperature.
    always = kind == "openai-chat" and profile.get("thinking_always_enabled")
    return abilities | {
        "tools": profile.get("supports_tools"),
        "reasoning": profile.get("supports_thinking"),
        "temperature": not always,
    }


def _model_of(kind: str, name: str) -> Any:
    if kind == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel

        return AnthropicModel(name, provider=_client(kind))
    from pydantic_ai.models.openai import OpenAIChatModel

    return OpenAIChatModel(name, provider=_client(kind))


@cache
def _client(kind: str) -> Any:
    """Return a client that only reads profiles. Cached, because creating it takes 20 ms."""
    if kind == "anthropic":
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicProvider(api_key="none")
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIProvider(base_url="http://none.invalid", api_key="none")
