"""What a browser calls itself, in words."""

from django import template
from django.utils.translation import gettext as _

register = template.Library()

# Each with how it shows; those that claim to be others as well come before them.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
LONGEST = 60


@register.filter
def browser(user_agent: str) -> str:
    """Such as “Firefox on Linux”; of what is not known, what it says itself."""
    name = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if name and system:
        return _("%(browser)s on %(system)s") % {"browser": name, "system": system}
    return user_agent[:LONGEST] or _("A browser without a name")
