"""A history of ten times the length does not slow down the filling of the bank."""

import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from memory.layers.bank import BankItem, render
from memory.layers.lines import Line
from memory.layers.periods import Granularity
from memory.layers.roll_up import roll_up

NEWEST = date(2026, 11, 21)
RUNS = 20
WORDS = [f"word{number}" for number in range(2_000)]


def history(conversations: int, days: int) -> list[BankItem]:
    """Conversations of five lines each: those of the last month, and the digests of others."""
    chance = random.Random(2)
    months: defaultdict[tuple[int, int], list[list[Line]]] = defaultdict(list)
    recent = []
    for number in range(conversations):
        day = NEWEST - timedelta(days=number * days // conversations)
        lines = [
            Line(" ".join(chance.choices(WORDS, k=14)), day, "Ana", score=chance.uniform(1, 8))
            for _ in range(5)
        ]
        if day > NEWEST - timedelta(days=30):
            recent.append(lines)
        else:
            months[day.year, day.month].append(lines)
    entries = [*recent, *map(roll_up, months.values())]
    return [
        BankItem(
            UUID(int=number),
            Granularity.CONVERSATION,
            "",
            lines,
            20,
            datetime.combine(lines[0].day, datetime.min.time(), UTC),
        )
        for number, lines in enumerate(entries, 1)
    ]


def test_three_thousand_conversations_take_no_longer_than_three_hundred(compare, timed):
    short, long = history(300, 110), history(3_000, 1_095)
    times = {
        name: [timed(lambda items=items: render(items, 2_000)) for _ in range(RUNS)]
        for name, items in (("short", short), ("long", long))
    }
    what = "filling for 3,000 conversations against 300"
    assert compare(what, times["short"], times["long"], 2) < 2
