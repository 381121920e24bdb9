"""`|tool_title`: the title of one of Strata's own tools for pages."""

from django import template

from chat.prompt import tools
from projects.core.errors import StrOrPromise

register = template.Library()


@register.filter
def tool_title(name: str) -> StrOrPromise:
    """Return the title of the tool, or its name if the tool no longer exists."""
    tool = tools.all_tools().get(name)
    return tool.title if tool else name
