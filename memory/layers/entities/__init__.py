"""Entities in a text: names, dates, times, numbers, amounts, links, identifiers. Pure.

Readers expect these particulars in a digest. Identifiers, ISO dates and numbers are found in any
language; names, written dates and units only in English and German, the languages of the product. A
match that could also be an ordinary word is ignored. Each line is read separately, so the entities
of a text are the entities of its lines.
"""

import re
from collections.abc import Iterator

from memory.layers.entities import dates, identifiers, names, numbers
from memory.layers.entities.kinds import MAX_CHARS, Entity, EntityKind, EntityPattern

__all__ = ["Entity", "EntityKind", "find_all_entities", "find_entities"]

# The order matters: links contain dates, dates look like versions, many begin with a number.
_PATTERNS: tuple[EntityPattern, ...] = (
    *identifiers.ADDRESSES,
    *dates.PATTERNS,
    *identifiers.CODES,
    *numbers.PATTERNS,
    identifiers.CAPITALS,
)
# A bullet or a number at the beginning of a line, but not the number of "3. März".
_MARK = re.compile(rf"^\s*(?:[-*+•–—]|\(?\d{{1,2}}[.)](?!\s+{dates.MONTH}))\s+", re.IGNORECASE)
# Replaces matched text. It is no letter, digit or space, so no other pattern matches across it.
_MATCHED = "\ue000"


def find_entities(text: str) -> list[Entity]:
    """Return the significant entities in the first MAX_CHARS characters of `text`, without
    duplicates and in the order of the lines.
    """
    return [entity for entity in find_all_entities(text) if entity.significant]


def find_all_entities(text: str) -> list[Entity]:
    """Return the entities like `find_entities`, but also the insignificant ones."""
    found: dict[Entity, Entity] = {}
    for line in text[:MAX_CHARS].splitlines():
        for entity in _find_in_line(line):
            if entity not in found or (entity.significant and not found[entity].significant):
                found[entity] = entity
    return list(found.values())


def _find_in_line(line: str) -> Iterator[Entity]:
    rest = names.normalize(_MARK.sub("", line))
    for kind, pattern, form_of in _PATTERNS:
        pieces, end = [], 0
        for match in pattern.finditer(rest):
            form = form_of(match)
            if form is not None:
                yield Entity(kind, form.form, match[0].strip(" .,-`"), form.significant)
                pieces += [rest[end : match.start()], _MATCHED]
                end = match.end()
        rest = "".join([*pieces, rest[end:]])
    for name in names.find(rest):
        yield Entity(EntityKind.NAME, names.form(name), name)
