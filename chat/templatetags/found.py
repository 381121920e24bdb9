"""`|found:query`: a text with the words that were searched for marked."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chat.search import pattern

register = template.Library()


@register.filter
def found(text: str, query: str) -> SafeString:
    """`text`, escaped, each of its words that begins with one of `query`'s in a <mark>."""
    pieces, end = [], 0
    for match in pattern(query).finditer(text):
        pieces.append((text[end : match.start()], match[0]))
        end = match.end()
    marked = format_html_join("", "{}<mark>{}</mark>", pieces)
    return format_html("{}{}", marked, text[end:])
