"""Where replies come from."""

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat.providers.base import (
    Completion,
    Delta,
    Failed,
    Finished,
    Provider,
    ProviderError,
    Shape,
    ShapeRefused,
)

__all__ = [
    "Completion",
    "Delta",
    "Failed",
    "Finished",
    "Provider",
    "ProviderError",
    "Shape",
    "ShapeRefused",
    "can_call",
    "can_see",
    "can_shape",
    "get",
]


def get(name: str, kind: str) -> Provider:
    """The provider behind a model name, asked for what `kind` says, which measures tell.

    Raises ProviderError when it cannot be reached at all. Call it in a thread: the first of a
    process may import pydantic-ai, for most of a second in which an event loop would stand still.
    """
    from chat.providers.measured import Measured

    return Measured(_found(name), name, kind)


def _found(name: str) -> Provider:
    # pydantic-ai takes most of a second to import, which no command that never talks should pay.
    from chat.providers.models import ModelProvider

    if name != "demo":
        return ModelProvider(name)
    if not settings.DEMO_MODEL_URL:
        raise ProviderError(
            _("The demo model is not running. Start Strata with `make run`, or set a chat model."),
            status=503,
        )
    return ModelProvider(name, base_url=f"{settings.DEMO_MODEL_URL}/v1")


def can_see(name: str) -> bool:
    """Whether images may be sent to the model `name`, as far as is known of it."""
    from chat.providers import models

    return name != "demo" and models.can_see(name)


def can_call(name: str) -> bool:
    """Whether the model `name` can be offered tools, as far as is known of it.

    The demo model would be, by its server, and is too small to call one.
    """
    from chat.providers import models

    return name != "demo" and models.can_call(name)


def can_shape(name: str) -> bool:
    """Whether the model `name` can be held to a schema of its answer, as far as is known of it.

    The demo model could, but is too small to fill one in.
    """
    from chat.providers import models

    return name != "demo" and models.can_shape(name)
