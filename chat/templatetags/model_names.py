"""`{% model_names %}`: models that a field for a model's name suggests."""

from django import template
from django.conf import settings

from chat.providers import discovery

register = template.Library()


@register.simple_tag
def model_names() -> list[str]:
    """Return the server's default, the models of a local Ollama, one model of each provider whose
    key is set, and all models of the providers on the Models page.
    """
    found = discovery.list_models_with_keys(is_complete=True)
    return list(dict.fromkeys([settings.CHAT_MODEL, *discovery.list_ollama_models(), *found]))
