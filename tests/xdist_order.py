"""Choose the first tests of each process in a parallel run."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

# The folders whose tests take long: files that stand alone, and folders whose files share a Strata
# or a browser that takes long to start.
ALONE = "torture"
SHARING = ("e2e", "docs", "chat/openai_api", "operations")
# Files with a test of a minute or two, which nobody should begin last.
LONGEST = ("test_schema.py", "test_state_machine.py")


class Item(Protocol):
    @property
    def path(self) -> Path: ...


T = TypeVar("T", bound=Item)


def dealt(items: Sequence[T], root: Path, processes: int) -> list[T]:
    """The tests below `root` in an order of which xdist hands each process an equal share.

    Each gets its part of the files that take long, with quick tests between them: those that take
    long have processes of their own, of which all at once would only wait for each other. Quick
    ones come last, for whoever is done takes from the end of another's.
    """
    quick: list[T] = []
    long: dict[Path, list[T]] = defaultdict(list)
    for item in items:
        file = item.path.relative_to(root)
        if _unit(file):
            long[file].append(item)
        else:
            quick.append(item)
    order: list[T] = []
    for number, hand in enumerate(_hands(list(long), processes)):
        left = processes - number
        share = (len(items) - len(order)) // left
        room = share - sum(len(long[file]) for file in hand) if left > 1 else len(quick)
        between, quick = quick[: max(room, 0)], quick[max(room, 0) :]
        for place, file in enumerate(hand):
            order += long[file]
            begin, end = (len(between) * element // len(hand) for element in (place, place + 1))
            order += between[begin:end]
        order += [] if hand else between
    return order


def _hands(files: Sequence[Path], processes: int) -> list[list[Path]]:
    """About as many files for each process, those that share something together."""
    units: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        units[_unit(file)].append(file)
    hands: list[list[Path]] = [[] for _ in range(processes)]
    for unit in sorted(units.values(), key=len, reverse=True):
        min(hands, key=len).extend(unit)
    for hand in hands:
        hand.sort(key=lambda file: file.name not in LONGEST)
    return hands


def _unit(file: Path) -> str:
    """What goes to one process as a whole; nothing for what is quick."""
    if file.parts[0] == ALONE:
        return str(file)
    return next((folder for folder in SHARING if file.is_relative_to(folder)), "")
