"""Roll-up without a model: merges lines of several conversations into one ordered list. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

from memory.layers.content_words import content_words
from memory.layers.lines import Line

_DIGIT = re.compile(r"\d")
# A line repeats another if they share this part of the words of the shorter line.
REPEATED_SHARE = 0.7
# The maximum number of lines in a digest. A bank of 2,000 tokens has about 70 lines in total.
MAX_LINES = 60


class LineIndex:
    """The lines taken so far, indexed by word to find lines that repeat them."""

    def __init__(self) -> None:
        # Cached, because a line is compared several times before it is taken.
        self._words = cache(content_words)
        self._lines: list[frozenset[str]] = []
        self._lines_with: defaultdict[str, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: Line) -> None:
        words = self._words(line.text)
        for word in words:
            self._lines_with[word].append(len(self._lines))
        self._lines.append(words)

    def repeats(self, line: Line) -> bool:
        """Return whether a line taken earlier repeats `line`: both share REPEATED_SHARE of the
        words of the shorter line, and the earlier line has all words of `line` that contain a
        digit.
        """
        words = self._words(line.text)
        shared = Counter(place for word in words for place in self._lines_with.get(word, ()))
        return any(
            count >= REPEATED_SHARE * min(len(words), len(self._lines[place]))
            and not any(_DIGIT.search(word) for word in words - self._lines[place])
            for place, count in shared.items()
        )


def roll_up(lists: Iterable[Sequence[Line]], limit: int = MAX_LINES) -> list[Line]:
    """Return the first `limit` lines of `rolled_up`."""
    return list(islice(rolled_up(lists), limit))


def rolled_up(lists: Iterable[Sequence[Line]]) -> Iterator[Line]:
    """Yield the lines of several conversations, the most important first.

    In each round, every conversation contributes its next line. Within a round, lines with higher
    scores come first, then earlier lines. In the first round, the best line of each week comes
    before all second lines of a week. A line that repeats a yielded line is left out.
    """
    taken = LineIndex()
    rests = [iter(lines) for lines in lists]
    while rests:
        candidates = []
        for rest in list(rests):
            line = next((line for line in rest if not taken.repeats(line)), None)
            if line is None:
                rests.remove(rest)
            else:
                candidates.append(line)
        candidates.sort(key=lambda line: (-line.score, line.day))
        if not len(taken):
            candidates = _weeks_first(candidates)
        for line in candidates:
            # Lines of the same round may repeat each other.
            if not taken.repeats(line):
                taken.add(line)
                yield line


def _weeks_first(lines: Sequence[Line]) -> list[Line]:
    """Move the first line of each week to the front."""
    first: dict[tuple[int, int], Line] = {}
    others = []
    for line in lines:
        week = line.day.isocalendar()[:2]
        if week in first:
            others.append(line)
        else:
            first[week] = line
    return [*first.values(), *others]
