"""Excerpts into a budget, and how they stand there. Pure."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from memory import fence


def line(at: datetime, speaker: str, text: str, zone: tzinfo) -> str:
    """An excerpt as it stands in prompts: its day in `zone`, who speaks, and the quoted text.

    In every zone it has the same number of tokens.
    """
    who = " ".join(fence.quote(speaker).split())
    return f"[{at.astimezone(zone):%Y-%m-%d}] {who}: {fence.quote(text)}\n"


def pack(tokens: Iterable[int], budget: int | None = None, limit: int | None = None) -> list[int]:
    """Which of the excerpts, given the best first by their tokens, fit whole into `budget`: the
    places of at most `limit` of them, the best first. One that is too long makes room for the next.
    """
    kept: list[int] = []
    for place, cost in enumerate(tokens):
        if limit is not None and len(kept) >= limit:
            break
        if budget is None:
            kept.append(place)
        elif cost <= budget:
            kept.append(place)
            budget -= cost
    return kept
