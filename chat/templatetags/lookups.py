"""`|tool_title`: what a tool of Strata's own does, for people."""

from django import template

from chat.prompt import tools
from projects.core.errors import StrOrPromise

register = template.Library()


@register.filter
def tool_title(name: str) -> StrOrPromise:
    """Return the title of the tool, or its name if it exists no more."""
    tool = tools.all_tools().get(name)
    return tool.title if tool else name
