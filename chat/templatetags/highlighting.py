"""`|highlight:query`: a text with the words of a search marked, and the same for HTML."""

import re
from html import unescape

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chat.conversations.search import MAX_SEARCHED_CHARS, word_pattern

register = template.Library()

# Sanitised HTML contains no angle brackets inside tags.
_TAG = re.compile(r"(<[^<>]*>)")


@register.filter
def highlight(text: str, query: str) -> SafeString:
    """Return the escaped text with a <mark> around each word that begins with one of `query`."""
    parts, end = [], 0
    for match in word_pattern(query).finditer(text, 0, MAX_SEARCHED_CHARS):
        parts.append((text[end : match.start()], match[0]))
        end = match.end()
    marked = format_html_join("", "{}<mark>{}</mark>", parts)
    return format_html("{}{}", marked, text[end:])


@register.filter
def highlight_html(html: SafeString, query: str) -> SafeString:
    """Return HTML from chat.templatetags.markup with its text as by `highlight`."""
    parts = _TAG.split(html)
    # Every second part is a tag.
    parts[::2] = [highlight(unescape(text), query) for text in parts[::2]]
    return mark_safe("".join(parts))  # noqa: S308
