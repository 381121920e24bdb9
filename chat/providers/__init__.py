"""Where replies come from."""

from django.conf import settings

from chat.providers.base import Completion, Delta, Finished, Provider, ProviderError

__all__ = ["Completion", "Delta", "Finished", "Provider", "ProviderError", "get"]


def get(name: str) -> Provider:
    """The provider behind a model name. Raises ProviderError when it cannot be reached at all."""
    # pydantic-ai takes most of a second to import, which no command that never talks should pay.
    from chat.providers.models import ModelProvider

    if name != "demo":
        return ModelProvider(name)
    if not settings.DEMO_MODEL_URL:
        raise ProviderError(
            "The demo model is not running. Start Strata with `make run`, or set a chat model."
        )
    return ModelProvider(name, base_url=f"{settings.DEMO_MODEL_URL}/v1")
