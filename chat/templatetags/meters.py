"""`{% meter receipt %}`: a bar that shows the parts of a prompt, in the colours of the layers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django import template
from django.utils.translation import ngettext

from chat.prompt.types import SOURCE_GROUPS, source_group

register = template.Library()

# Sections whose items are messages and images of the conversation itself.
CONVERSATION_SECTIONS = ("history", "message")
LAYERS = ("month", "week", "day", "conversation")


class MeterPart(NamedTuple):
    """A part of the bar. `start` and `width` are in percent."""

    name: str
    tokens: int
    start: str
    width: str


@register.inclusion_tag("chat/_meter.html")
def meter(receipt: Mapping[str, Any], extra: str = "") -> dict[str, object]:
    """Return the sections of a receipt as parts of the bar. The bank is divided into its layers."""
    sizes = [size for section in receipt.get("sections", ()) for size in _sizes(section)]
    total = sum(tokens for _, tokens in sizes) or 1
    parts, start = [], 0.0
    for name, tokens in sizes:
        width = 100 * tokens / total
        parts.append(MeterPart(name, tokens, f"{start:.2f}", f"{max(width - 0.6, 0.4):.2f}"))
        start += width
    return {"parts": parts, "extra": extra}


def _sizes(section: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield pairs (name, tokens) for a section. For the bank, yield a pair for each layer in it."""
    by_layer = {
        layer: sum(item["tokens"] for item in section["items"] if item["kind"] == layer)
        for layer in LAYERS
        if any(item["kind"] == layer for item in section["items"])
    }
    if not by_layer:
        yield section["name"], section["tokens"]
    # Distribute the tokens of headings and quotation marks, which belong to no item.
    scale = section["tokens"] / (sum(by_layer.values()) or 1)
    for layer, tokens in by_layer.items():
        yield layer, round(tokens * scale)


@register.filter
def used_groups(receipt: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the groups of sources in the prompt with their numbers, such as ("memory", "5
    memories"). Empty if the prompt contained only the chat itself.
    """
    counts = Counter(
        source_group(item["kind"])
        for section in receipt.get("sections", ())
        if section["name"] not in CONVERSATION_SECTIONS
        for item in section["items"]
    )
    memories, facts, quotes, passages, pins = (counts[group] for group in SOURCE_GROUPS)
    texts = (
        ngettext("%(n)s memory", "%(n)s memories", memories),
        ngettext("%(n)s fact", "%(n)s facts", facts),
        ngettext("%(n)s quote", "%(n)s quotes", quotes),
        ngettext("%(n)s passage from files", "%(n)s passages from files", passages),
        ngettext("%(n)s pinned text", "%(n)s pinned texts", pins),
    )
    return [
        (group, text % {"n": counts[group]})
        for group, text in zip(SOURCE_GROUPS, texts, strict=True)
        if counts[group]
    ]


@register.filter
def prompt_tokens(receipt: Mapping[str, Any]) -> int:
    return sum(section["tokens"] for section in receipt.get("sections", ()))
