"""Template filters that are available without `load`: text that is stored in English, and times."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from projects.core.text import translate_name, translate_reason

register = template.Library()
register.filter("named", translate_name)
register.filter("translated", translate_reason)


@register.filter
def local_time(moment: datetime) -> SafeString:
    """Return `moment` as an element. Scripts show it in the reader's time zone."""
    shown = timezone.localtime(moment)
    text = date_format(shown, "DATETIME_FORMAT")
    return format_html('<time datetime="{}">{}</time>', shown.isoformat(timespec="seconds"), text)
