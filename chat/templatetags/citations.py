"""`|cited:message`: in the HTML of a reply, links `[1]` to the cited passage of a file."""

import re

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from chat.models import Message

register = template.Library()

# Sanitised HTML contains no angle brackets inside tags.
_TAG = re.compile(r"(<[^<>]*>)")
_NUMBER = re.compile(r"\[(\d{1,3})\]")
_OPENS, _CLOSES = re.compile(r"<(?:a|code|pre|math)\b"), re.compile(r"</(?:a|code|pre|math)>")


@register.filter
def cited(html: SafeString, message: Message) -> SafeString:
    """Link the numbers of the passages that the receipt of the reply lists."""
    sections = message.receipt.get("sections", ())
    count = sum(len(it["items"]) for it in sections if it.get("name") == "files")
    if not count or "[" not in html:
        return html

    def link(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 0 < number <= count:
            return match[0]
        return format_html(
            '<a class="citation" href="{}">[{}]</a>',
            reverse("reply-file", args=[message.pk, number]),
            number,
        )

    parts, depth = _TAG.split(html), 0
    for index, part in enumerate(parts):
        if index % 2 == 0:
            parts[index] = part if depth else _NUMBER.sub(link, part)
        elif _OPENS.match(part):
            depth += 1
        elif _CLOSES.match(part):
            depth -= 1
    return mark_safe("".join(parts))  # noqa: S308
