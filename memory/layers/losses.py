"""Losses: particulars in the sources of an entry that are not in its text. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.layers.bank import SEPARATOR
from memory.layers.entities import (
    Entity,
    EntityKind,
    dates,
    find_all_entities,
    find_entities,
    names,
)
from memory.layers.entities.kinds import MAX_CHARS

# The maximum length of the stored list of losses. The last item counts the losses not listed.
MAX_LISTED = 50
MAX_LOSS_CHARS = 120
# The kind of the item that counts the losses that are not listed.
MORE = "more"

_COUNTED = (EntityKind.NUMBER, EntityKind.AMOUNT, EntityKind.PERCENTAGE)
_PUNCTUATION = "`*_.,;:!?()[]{}<>\"'“”„«»‘’…"


@dataclass(frozen=True)
class Audit:
    """The result of a comparison: the sources' `particulars`, and those `missing` in the entry."""

    particulars: Sequence[Entity]
    missing: Sequence[Entity]

    @property
    def held(self) -> int:
        return len(self.particulars)

    def listed(self) -> list[dict[str, str]]:
        """Return `missing` as it is stored: a list of at most `MAX_LISTED` items {"kind", "text"}.

        If there are more, the last item is {"kind": "more", "text": "12"}, where 12 is the number
        of losses that are not listed.
        """
        items = [
            {"kind": str(entity.kind), "text": entity.text[:MAX_LOSS_CHARS]}
            for entity in self.missing
        ]
        if len(items) <= MAX_LISTED:
            return items
        listed = items[: MAX_LISTED - 1]
        return [*listed, {"kind": MORE, "text": str(len(items) - len(listed))}]


def without_texts(listed: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return a list with only the number of losses, because their texts may be private."""
    number = count_losses(listed)
    return [{"kind": MORE, "text": str(number)}] if number else []


def count_losses(listed: Sequence[dict[str, str]]) -> int:
    """Return the number of losses, including those counted by the last item."""
    if listed and listed[-1]["kind"] == MORE:
        return len(listed) - 1 + int(listed[-1]["text"])
    return len(listed)


def audit_messages(texts: Iterable[str], summary: str) -> Audit:
    """Compare the summary of a conversation with the particulars of its messages."""
    return audit((("", text) for text in texts), summary)


def audit(children: Iterable[tuple[str, str]], digest: str) -> Audit:
    """Compare `digest` with the particulars of its children, given as pairs (label, summary).

    `digest` need not contain a date that is in the label of its child, or a less precise form of it
    (March 2026 for 3 March 2026).
    """
    particulars: dict[Entity, None] = {}
    for label, summary in children:
        period = TextIndex(label.partition(SEPARATOR)[0])
        particulars.update(
            (entity, None) for entity in find_entities(summary) if not period.has_date(entity)
        )
    index = TextIndex(digest)
    return Audit(
        list(particulars), [particular for particular in particulars if particular not in index]
    )


class TextIndex:
    """A text in which entities are looked up, each in constant time."""

    def __init__(self, text: str) -> None:
        entities = find_all_entities(text)
        self._forms = {entity.form for entity in entities}
        self._numbers = {entity.form for entity in entities if entity.kind == EntityKind.NUMBER}
        self._values = {
            entity.form.partition(" ")[0] for entity in entities if entity.kind in _COUNTED
        }
        self._dates = {
            reading
            for entity in entities
            if entity.kind == EntityKind.DATE
            for reading in dates.readings(entity.form)
        }
        self._date_parts = {part for reading in self._dates for part in dates.parts(reading)}
        self._words = names.vocabulary(text)
        self._tokens = {token.strip(_PUNCTUATION) for token in text[:MAX_CHARS].casefold().split()}

    def __contains__(self, entity: Entity) -> bool:
        if entity.form in self._forms:
            return True
        if entity.kind == EntityKind.NAME:
            words = (word.casefold() for word in names.required_words(entity.text))
            return all({word, f"{word}s"} & self._words for word in words)
        if entity.kind == EntityKind.DATE:
            return self.has_date(entity)
        if entity.kind == EntityKind.NUMBER:
            value, _, unit = entity.form.partition(" ")
            return value in (self._numbers if unit else self._values)
        return all(part in self._tokens for part in entity.form.split())

    def has_date(self, entity: Entity) -> bool:
        """Return whether `entity` is a date in the text, with or without its year."""
        return entity.kind == EntityKind.DATE and any(
            reading in self._date_parts or dates.without_year(reading) in self._dates
            for reading in dates.readings(entity.form)
        )
