"""`|highlight:query`: a text with the words of a search marked."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chat.conversations.search import MAX_SEARCHED_CHARS, word_pattern

register = template.Library()


@register.filter
def highlight(text: str, query: str) -> SafeString:
    """Return the escaped text with a <mark> around each word that begins with one of `query`."""
    parts, end = [], 0
    for match in word_pattern(query).finditer(text, 0, MAX_SEARCHED_CHARS):
        parts.append((text[end : match.start()], match[0]))
        end = match.end()
    marked = format_html_join("", "{}<mark>{}</mark>", parts)
    return format_html("{}{}", marked, text[end:])
