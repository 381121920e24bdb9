"""Template filters for text that is stored in English. They are available without `load`."""

from django import template

from projects.core.text import translate_name, translate_reason

register = template.Library()
register.filter("named", translate_name)
register.filter("translated", translate_reason)
