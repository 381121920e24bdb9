"""How long a project keeps its chats, on its settings."""

from django import template

from memory import retention
from projects.models import Project

register = template.Library()

# Days for which the page tells what would go.
USUAL = (30, 90, 365)


@register.simple_tag
def chats_over(project: Project) -> list[tuple[int, int]]:
    """Days, and how many chats would go now if the project kept them for so long."""
    days = {*USUAL, *([project.keep_days] if project.keep_days else [])}
    return [(one, retention.would_go(project, one)) for one in sorted(days)]
