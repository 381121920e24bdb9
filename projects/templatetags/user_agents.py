"""Readable names of browsers, from User-Agent headers."""

from django import template
from django.utils.translation import gettext as _

register = template.Library()

# Substrings and names. Browsers whose header also contains another browser's name come first.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
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
MAX_NAME_CHARS = 60


@register.filter
def browser(user_agent: str) -> str:
    """Return a name such as “Firefox on Linux”, or the unchanged header if it is unknown."""
    name = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if name and system:
        return _("%(browser)s on %(system)s") % {"browser": name, "system": system}
    return user_agent[:MAX_NAME_CHARS] or _("Unknown browser")
