"""`{% meter receipt %}`: a prompt as a bar, in the colours of the layers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

register = template.Library()

# Their items are messages of the conversation itself, and its images.
CONVERSATION_SECTIONS = ("history", "message")
# The kinds of items that are counted apart from memories.
MEMORY, QUOTE = "memory", "quote"
QUOTES, OWN_NAMES = ("chunk", "message"), ("fact", "block")
LAYERS = ("month", "week", "day", "conversation")


class MeterPart(NamedTuple):
    """A part of the bar; `start` and `width` are in percent."""

    name: str
    tokens: int
    start: str
    width: str


@register.inclusion_tag("chat/_meter.html")
def meter(receipt: Mapping[str, Any], extra: str = "") -> dict[str, object]:
    """Return the parts of a receipt: its sections, and the layers inside the memory bank."""
    sizes = [size for section in receipt.get("sections", ()) for size in _sizes(section)]
    total = sum(tokens for _, tokens in sizes) or 1
    parts, start = [], 0.0
    for name, tokens in sizes:
        width = 100 * tokens / total
        parts.append(MeterPart(name, tokens, f"{start:.2f}", f"{max(width - 0.6, 0.4):.2f}"))
        start += width
    return {"parts": parts, "extra": extra}


def _sizes(section: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield (name, tokens) of a section; for the bank, one for each layer in it."""
    by_layer = {
        layer: sum(item["tokens"] for item in section["items"] if item["kind"] == layer)
        for layer in LAYERS
        if any(item["kind"] == layer for item in section["items"])
    }
    if not by_layer:
        yield section["name"], section["tokens"]
    # Headings and quotation marks belong to no item, so their tokens are distributed.
    scale = section["tokens"] / (sum(by_layer.values()) or 1)
    for layer, tokens in by_layer.items():
        yield layer, round(tokens * scale)


@register.filter
def used_label(receipt: Mapping[str, Any]) -> str:
    """Return how much the prompt contained, such as “Used 5 memories · 3 facts · 2 quotes”; empty
    if it contained nothing but the chat itself.
    """
    counts = Counter(
        QUOTE if item["kind"] in QUOTES else item["kind"] if item["kind"] in OWN_NAMES else MEMORY
        for section in receipt.get("sections", ())
        if section["name"] not in CONVERSATION_SECTIONS
        for item in section["items"]
    )
    memories, facts, quotes, pins = (counts[kind] for kind in (MEMORY, "fact", QUOTE, "block"))
    parts = [
        (memories, ngettext("%(n)s memory", "%(n)s memories", memories)),
        (facts, ngettext("%(n)s fact", "%(n)s facts", facts)),
        (quotes, ngettext("%(n)s quote", "%(n)s quotes", quotes)),
        (pins, ngettext("%(n)s pinned text", "%(n)s pinned texts", pins)),
    ]
    named = " · ".join(text % {"n": count} for count, text in parts if count)
    return _("Used %(what)s") % {"what": named} if named else ""


@register.filter
def prompt_tokens(receipt: Mapping[str, Any]) -> int:
    return sum(section["tokens"] for section in receipt.get("sections", ()))
