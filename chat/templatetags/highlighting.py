"""`|highlight:query`: marks the words of a search in a text; also for HTML."""

import re
from html import unescape

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chat.conversations.search import MAX_SEARCHED_CHARS, word_pattern

register = template.Library()

# A tag. Sanitised HTML contains no angle brackets inside tags.
_TAG = re.compile(r"(<[^<>]*>)")


@register.filter
def highlight(text: str, query: str) -> SafeString:
    """Return the escaped text with <mark> around each word that begins with a word of `query`."""
    parts, end = [], 0
    for match in word_pattern(query).finditer(text, 0, MAX_SEARCHED_CHARS):
        parts.append((text[end : match.start()], match[0]))
        end = match.end()
    marked = format_html_join("", "{}<mark>{}</mark>", parts)
    return format_html("{}{}", marked, text[end:])


@register.filter
def highlight_html(html: SafeString, query: str) -> SafeString:
    """Return HTML from chat.templatetags.markup, in which words are marked as in `highlight`."""
    parts = _TAG.split(html)
    # Tags and text alternate, beginning with text.
    parts[::2] = [highlight(unescape(text), query) for text in parts[::2]]
    return mark_safe("".join(parts))  # noqa: S308
