"""Which tests each process of a parallel run begins with."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

# The folders whose tests take long: files that stand alone, and folders whose files share a Strata
# or a browser that takes long to start.
ALONE = "torture"
SHARING = ("e2e", "docs", "chat/completions", "operations")


class Item(Protocol):
    @property
    def path(self) -> Path: ...


T = TypeVar("T", bound=Item)


def dealt(items: Sequence[T], root: Path, processes: int) -> list[T]:
    """The tests below `root` in an order whose equal shares, which xdist hands to its processes,
    each begin with their part of those that take long. What is quick comes last: of its end, those
    that are done take from the others.
    """
    quick: list[T] = []
    long: dict[str, list[T]] = defaultdict(list)
    for item in items:
        file = item.path.relative_to(root)
        if unit := _unit(file):
            long[unit].append(item)
        else:
            quick.append(item)
    hands: list[list[str]] = [[] for _ in range(processes)]
    files = {unit: len({item.path for item in tests}) for unit, tests in long.items()}
    for unit in sorted(long, key=lambda unit: -files[unit]):
        min(hands, key=lambda hand: sum(files[one] for one in hand)).append(unit)
    order: list[T] = []
    for number, hand in enumerate(hands):
        share = (len(items) - len(order)) // (processes - number)
        order += (begun := [item for unit in hand for item in long[unit]])
        room = max(share - len(begun), 0) if number < processes - 1 else len(quick)
        order += quick[:room]
        del quick[:room]
    return order


def _unit(file: Path) -> str:
    """What goes to one process as a whole; nothing for what is quick."""
    if file.parts[0] == ALONE:
        return str(file)
    return next((folder for folder in SHARING if file.is_relative_to(folder)), "")
