"""What a digest does not carry of what it was made of. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.layers.bank import SEPARATOR
from memory.layers.particulars import Kind, Particular, dates, mentioned, names, particulars
from memory.layers.particulars.kinds import MOST_CHARACTERS

# Entries on the list that is kept with a digest; what is beyond them is counted in the last.
MOST_LISTED = 50
# Characters of one of them.
_LONGEST = 120
# What stands in the list for those that are not listed.
MORE = "more"

_COUNTED = (Kind.NUMBER, Kind.AMOUNT, Kind.PERCENTAGE)
_PUNCTUATION = "`*_.,;:!?()[]{}<>\"'“”„«»‘’…"


@dataclass(frozen=True)
class Audit:
    """`particulars` are those that the children hold, `missing` those that the digest lacks."""

    particulars: Sequence[Particular]
    missing: Sequence[Particular]

    @property
    def held(self) -> int:
        return len(self.particulars)

    @property
    def share(self) -> float:
        """Of what the children hold, how much the digest carries; 1 where they hold nothing."""
        return 1 - len(self.missing) / self.held if self.held else 1.0

    def listed(self) -> list[dict[str, str]]:
        """`missing` as it is kept: {"kind", "text"} each, at most MOST_LISTED. If there are more,
        the last is {"kind": "more", "text": "12"}, with the number of those that are not listed.
        """
        found = [{"kind": str(one.kind), "text": one.text[:_LONGEST]} for one in self.missing]
        if len(found) <= MOST_LISTED:
            return found
        kept = found[: MOST_LISTED - 1]
        return [*kept, {"kind": MORE, "text": str(len(found) - len(kept))}]


def number(listed: Sequence[dict[str, str]]) -> int:
    """How many losses a list of them stands for: its last may tell how many more there are."""
    if listed and listed[-1]["kind"] == MORE:
        return len(listed) - 1 + int(listed[-1]["text"])
    return len(listed)


def audit(children: Iterable[tuple[str, str]], digest: str) -> Audit:
    """Looks in `digest` for what its children tell, given as (label, summary) each.

    A date that a child's label tells as its period is not looked for.
    """
    held: dict[Particular, None] = {}
    for label, summary in children:
        own = _Told(label.partition(SEPARATOR)[0])
        held.update((one, None) for one in particulars(summary) if not own.dates(one))
    told = _Told(digest)
    return Audit(list(held), [one for one in held if not told.tells(one)])


def missing(children: Iterable[str], digest: str) -> list[Particular]:
    """What texts without labels tell and `digest` does not."""
    return list(audit((("", text) for text in children), digest).missing)


class _Told:
    """A text in which particulars are looked up, each in constant time."""

    def __init__(self, text: str) -> None:
        found = mentioned(text)
        self._forms = {one.form for one in found}
        self._numbers = {one.form for one in found if one.kind == Kind.NUMBER}
        self._values = {one.form.partition(" ")[0] for one in found if one.kind in _COUNTED}
        self._dates = {
            reading
            for one in found
            if one.kind == Kind.DATE
            for reading in dates.readings(one.form)
        }
        self._told_by_dates = {part for reading in self._dates for part in dates.parts(reading)}
        self._words = names.vocabulary(text)
        self._tokens = {
            token.strip(_PUNCTUATION) for token in text[:MOST_CHARACTERS].casefold().split()
        }

    def tells(self, one: Particular) -> bool:
        if one.form in self._forms:
            return True
        if one.kind == Kind.NAME:
            return all(map(self._has_word, names.bearers(one.text)))
        if one.kind == Kind.DATE:
            return self.dates(one)
        if one.kind == Kind.NUMBER:
            value, _, unit = one.form.partition(" ")
            return value in (self._numbers if unit else self._values)
        return all(part in self._tokens for part in one.form.split())

    def dates(self, one: Particular) -> bool:
        """Whether `one` is a date that the text tells, be it without the year."""
        return one.kind == Kind.DATE and any(
            reading in self._told_by_dates or dates.without_year(reading) in self._dates
            for reading in dates.readings(one.form)
        )

    def _has_word(self, word: str) -> bool:
        return any(stem in self._words or f"{stem}s" in self._words for stem in names.stems(word))
