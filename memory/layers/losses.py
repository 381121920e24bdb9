"""Losses: particulars in the sources of an entry that are not in its text. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.layers.bank import SEPARATOR
from memory.layers.entities import Entity, TextIndex, find_entities

# The maximum length of the stored list of losses. The last item counts the losses not listed.
MAX_LISTED = 50
MAX_LOSS_CHARS = 120
# The kind of the item that counts the losses that are not listed.
MORE = "more"


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
