"""Prices of models: set by a server administrator, or else listed in `genai-prices`."""

import time
from decimal import Decimal

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from chat.models import ModelPrice

# The maximum time until a change in the admin reaches all processes.
CACHE_S = 5.0
MILLION = Decimal(1_000_000)
# The names of providers in `genai-prices`, by our prefixes of model names.
LISTED_PROVIDERS = {
    "openai": "openai",
    "openai-chat": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "mistral": "mistral",
    "groq": "groq",
    "openrouter": "openrouter",
}

_set_prices: tuple[float, dict[str, ModelPrice]] = (0.0, {})


@receiver([post_save, post_delete], sender=ModelPrice)
def clear_cache(**_: object) -> None:
    """Clear the cache, so that this process reads the prices again at the next call."""
    global _set_prices
    _set_prices = (0.0, {})


def load() -> None:
    """Read the prices that administrators have set, unless they were read less than CACHE_S ago."""
    global _set_prices
    read_at, _ = _set_prices
    if not read_at or time.monotonic() - read_at > CACHE_S:
        prices = {price.model: price for price in ModelPrice.objects.all()}
        _set_prices = (time.monotonic(), prices)


def set_cost(model: str, input_tokens: int, cached_tokens: int, output_tokens: int):
    """Return the cost in US dollars by the price that an administrator has set; None without a
    price.

    It does not read the database. Call `load` first.
    """
    price = _set_prices[1].get(model)
    if price is None:
        return None
    cached_price = price.input_price if price.cached_price is None else price.cached_price
    cached = min(cached_tokens, input_tokens)
    total = (
        (input_tokens - cached) * price.input_price
        + cached * cached_price
        + output_tokens * price.output_price
    )
    return (total / MILLION).quantize(Decimal("0.000001"))


def cost(model: str, input_tokens: int, cached_tokens: int, output_tokens: int) -> Decimal | None:
    """Return the cost in US dollars, or None if no price is known."""
    amount = set_cost(model, input_tokens, cached_tokens, output_tokens)
    prefix, _, name = model.partition(":")
    if amount is not None or prefix not in LISTED_PROVIDERS:
        return amount
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens,
        cache_read_tokens=min(cached_tokens, input_tokens),
        output_tokens=output_tokens,
    )
    try:
        return calc_price(usage, name, provider_id=LISTED_PROVIDERS[prefix]).total_price
    except (LookupError, ValueError):
        return None
