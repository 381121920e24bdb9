"""`|age`: the age of a moment as a heading in the sidebar."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def age(moment: datetime) -> str:
    """Return “Today”, “Yesterday”, “Last 7 days”, or the month, in the active time zone."""
    today, day = timezone.localdate(), timezone.localdate(moment)
    days = (today - day).days
    if days < 2:
        return _("Today") if days < 1 else _("Yesterday")
    if days < 7:
        return _("Last 7 days")
    return date_format(day, "F" if day.year == today.year else "YEAR_MONTH_FORMAT")
