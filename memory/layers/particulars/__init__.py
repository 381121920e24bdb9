"""The particulars in a text: names, dates, times, numbers, amounts, links, identifiers. Pure.

Each line is read by itself, so the particulars of a text are those of its lines together. What
cannot be told apart from ordinary words is left alone: a particular is what a reader would look
for in a digest, and miss.
"""

import re
from collections.abc import Iterable, Iterator

from memory.layers.particulars import dates, identifiers, names, numbers
from memory.layers.particulars.kinds import MOST_CHARACTERS, Kind, Particular, Pass

__all__ = ["Kind", "Particular", "mentioned", "particulars"]

# In this order, since links hold dates, dates look like versions, and much begins with a number.
_PASSES: tuple[Pass, ...] = (
    *identifiers.ADDRESSES,
    *dates.PASSES,
    *identifiers.CODES,
    *numbers.PASSES,
    identifiers.CAPITALS,
)
# What a line begins with and does not say; “3. März” is none.
_MARK = re.compile(rf"^\s*(?:[-*+•–—]|\(?\d{{1,2}}[.)](?!\s+{dates.MONTH}))\s+", re.IGNORECASE)
# Stands where something was taken out: no letter, digit or space.
_TAKEN = "\ue000"


def particulars(text: str) -> list[Particular]:
    """Those of `text`, each once, in the order of its lines; MOST_CHARACTERS are read."""
    return [one for one in mentioned(text) if one.telling]


def mentioned(text: str) -> list[Particular]:
    """As `particulars`, with those that are not telling."""
    found: dict[Particular, Particular] = {}
    for line in text[:MOST_CHARACTERS].splitlines():
        for one in _in_line(line):
            if one not in found or (one.telling and not found[one].telling):
                found[one] = one
    return list(found.values())


def _in_line(line: str) -> Iterator[Particular]:
    left = names.spaced(_MARK.sub("", line))
    for kind, pattern, form_of in _PASSES:
        spans = []
        for match in pattern.finditer(left):
            form = form_of(match)
            if form is not None:
                spans.append(match.span())
                yield Particular(kind, form.form, match[0].strip(" .,-`"), form.telling)
        left = _without(left, spans)
    for name in names.find(left):
        yield Particular(Kind.NAME, names.form(name), name)


def _without(line: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [line[end:start], _TAKEN]
        end = stop
    return "".join([*pieces, line[end:]])
