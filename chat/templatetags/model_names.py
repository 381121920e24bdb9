"""`{% model_names %}`: models that a field for a model's name suggests."""

from django import template
from django.conf import settings

from chat.providers import discovery

register = template.Library()


@register.simple_tag
def model_names() -> list[str]:
    """Return the server's default, the models of a local Ollama, and one model of each provider
    whose key is set.
    """
    found = [*discovery.list_ollama_models(), *discovery.list_models_with_keys()]
    return list(dict.fromkeys([settings.CHAT_MODEL, *found]))
