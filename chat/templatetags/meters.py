"""`{% meter receipt %}`: a prompt as a bar, in the colours of the layers."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django import template

register = template.Library()

LAYERS = ("month", "week", "day", "conversation")


class Part(NamedTuple):
    """A stretch of the bar: what it is of, where it begins and how far it goes, in percent."""

    name: str
    tokens: int
    start: float
    width: float


@register.inclusion_tag("chat/_meter.html")
def meter(receipt: Mapping[str, Any], extra: str = "") -> dict[str, object]:
    """The bar of a prompt's receipt: its sections, the bank by layers, as shares of the whole."""
    sizes = [size for section in receipt.get("sections", ()) for size in _sizes(section)]
    whole = sum(tokens for _, tokens in sizes) or 1
    parts, start = [], 0.0
    for name, tokens in sizes:
        width = 100 * tokens / whole
        parts.append(Part(name, tokens, round(start, 2), round(max(width - 0.6, 0.4), 2)))
        start += width
    return {"parts": parts, "extra": extra}


def _sizes(section: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(name, tokens) of a section; of the bank, one for each layer that stands in it."""
    kinds = {item["kind"] for item in section["items"]} & set(LAYERS)
    if not kinds:
        yield section["name"], section["tokens"]
        return
    of_kind = {
        kind: sum(item["tokens"] for item in section["items"] if item["kind"] == kind)
        for kind in LAYERS
        if kind in kinds
    }
    # Headings and fence belong to the section but to no item: they are shared out.
    scale = section["tokens"] / (sum(of_kind.values()) or 1)
    for kind, tokens in of_kind.items():
        yield kind, round(tokens * scale)


@register.filter
def things(receipt: Mapping[str, Any]) -> int:
    """How many remembered things stood in the prompt: entries of the layers, facts, blocks."""
    return sum(
        item["kind"] not in ("message", "image")
        for section in receipt.get("sections", ())
        for item in section["items"]
    )


@register.filter
def prompt_tokens(receipt: Mapping[str, Any]) -> int:
    return sum(section["tokens"] for section in receipt.get("sections", ()))
