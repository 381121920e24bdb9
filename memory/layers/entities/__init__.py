"""Entities in a text: names, dates, times, numbers, amounts, links, identifiers. Pure.

Readers expect these particulars in a digest. Identifiers, ISO dates and numbers are found in any
language; names, written dates and units only in English and German, the languages of the product. A
match that could also be an ordinary word is ignored. Each line is read separately, so the entities
of a text are the entities of its lines.

A name is a capitalised word, or a run of them, that is not an ordinary word. The first word of a
sentence and every German noun are capitalised. These words count as names only in a context in
which ordinary words do not occur, such as "Ana asked" or "Frau Müller".
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.layers.entities.identifiers import ADDRESSES, CAPITALS, CODES
from memory.layers.entities.patterns import (
    DATES,
    MAX_CHARS,
    MONTH,
    NUMBERS,
    WORDS,
    Entity,
    EntityKind,
    EntityPattern,
    alternatives,
    date_parts,
    date_readings,
    without_year,
)

# The order matters: links contain dates, dates look like versions, many begin with a number.
_PATTERNS: tuple[EntityPattern, ...] = (*ADDRESSES, *DATES, *CODES, *NUMBERS, CAPITALS)
# A bullet or a number at the beginning of a line, but not the number of "3. März".
_MARK = re.compile(rf"^\s*(?:[-*+•–—]|\(?\d{{1,2}}[.)](?!\s+{MONTH}))\s+", re.IGNORECASE)
# Replaces matched text. It is no letter, digit or space, so no other pattern matches across it.
_MATCHED = "\ue000"
_COUNTED = (EntityKind.NUMBER, EntityKind.AMOUNT, EntityKind.PERCENTAGE)
_PUNCTUATION = "`*_.,;:!?()[]{}<>\"'“”„«»‘’…"

_MAX_NAME_WORDS = 5
_WORD = re.compile(r"[^\W\d_](?:\w|['’-](?=[^\W\d_])){0,60}")
_POSSESSIVE = re.compile(r"['’]s?$")
# Names with inner capitals: GitHub, PgBouncer, DuckDB.
_CAMEL = re.compile(r"^[^\Wa-zà-ÿ]*[a-zà-ÿ][^\WA-ZÀ-Þ]*[A-ZÀ-Þ]|^[A-Z]{2,}[a-z]{2}")
# The text before a word that begins a sentence, a clause or a quotation.
_STARTS = re.compile(r"[.!?…:;•|=]\s|[\"“”„«»‹›‘]|\s[–—-]\s")
_QUOTED = re.compile(r"\s?:\s[“\"«„]")

_LISTS = WORDS["names"]
_TITLES = frozenset(_LISTS["titles"].split())
_ANNOUNCING = _TITLES | frozenset(_LISTS["announcing"].split())
_BINDING = frozenset(_LISTS["binding"].split())
_CAPITALISED = frozenset(_LISTS["capitalised"].split())
_STARTING = _CAPITALISED | frozenset(_LISTS["starting"].split())
_GERMAN = frozenset(_LISTS["german"].split())
_ENGLISH = frozenset(_LISTS["english"].split())
_CONJUNCTIONS = frozenset(_LISTS["conjunctions"].split())
_VERBS = frozenset(_LISTS["verbs"].split())
_AMBIGUOUS_VERB = re.compile(
    rf"^(?:{alternatives(_LISTS['ambiguous_verbs'])})"
    rf" (?:{alternatives(_LISTS['after_ambiguous_verb'])})$"
)


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
    rest = normalize(_MARK.sub("", line))
    for kind, pattern, form_of in _PATTERNS:
        pieces, end = [], 0
        for match in pattern.finditer(rest):
            form = form_of(match)
            if form is not None:
                yield Entity(kind, form.form, match[0].strip(" .,-`"), form.significant)
                pieces += [rest[end : match.start()], _MATCHED]
                end = match.end()
        rest = "".join([*pieces, rest[end:]])
    for name in find_names(rest):
        folded = " ".join(required_words(name)).casefold()
        yield Entity(EntityKind.NAME, folded, name)


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
            for reading in date_readings(entity.form)
        }
        self._date_parts = {part for reading in self._dates for part in date_parts(reading)}
        self._words = vocabulary(text)
        self._tokens = {token.strip(_PUNCTUATION) for token in text[:MAX_CHARS].casefold().split()}

    def __contains__(self, entity: Entity) -> bool:
        if entity.form in self._forms:
            return True
        if entity.kind == EntityKind.NAME:
            words = (word.casefold() for word in required_words(entity.text))
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
            reading in self._date_parts or without_year(reading) in self._dates
            for reading in date_readings(entity.form)
        )


@dataclass(frozen=True, slots=True)
class NameWord:
    """A word of a line. `gap` is the text between it and the preceding word. `starts` is true if
    the word begins a sentence, a clause or a quotation; `owns` if it ends in 's.
    """

    text: str
    gap: str
    starts: bool
    owns: bool

    @property
    def plain(self) -> str:
        return self.text.casefold().replace("’", "'")

    @property
    def is_capitalised(self) -> bool:
        return self.text[0].isupper() and any(map(str.islower, self.text))


def normalize(text: str) -> str:
    """Return `text` with every letter and digit in its plain form."""
    return unicodedata.normalize("NFKC", text)


def find_names(line: str) -> Iterator[str]:
    """Yield the names in a line as they are spelled there."""
    words = list(_words(line))
    plain = [word.plain for word in words]
    is_german = sum(word in _GERMAN for word in plain) > sum(word in _ENGLISH for word in plain)
    # In a headline all words are capitalised. A list of names has commas, so it is no headline.
    capitals = sum(word.is_capitalised for word in words)
    is_headline = len(words) >= 5 and capitals > 0.8 * len(words)
    is_headline = is_headline and not any("," in word.gap for word in words)
    for place, run in _runs(words):
        if len(run) == 1 and _CAMEL.match(run[0].text):
            yield run[0].text
        elif not is_headline and (name := _name(words, place, run, is_german)):
            yield " ".join(word.text for word in name)


def required_words(name: str) -> list[str]:
    """Return the words of a name that must occur in a text if the text contains the name."""
    return [word for word in name.split() if word.casefold() not in _BINDING]


def vocabulary(text: str) -> set[str]:
    """Return the case-folded words of a text. The words of names are looked up in them."""
    found: set[str] = set()
    for match in _WORD.finditer(normalize(text[:MAX_CHARS])):
        whole = _POSSESSIVE.sub("", match[0])
        found.update(word.casefold() for word in (whole, *re.split(r"['’-]", whole)) if word)
    return found


def _words(line: str) -> Iterator[NameWord]:
    end = 0
    for match in _WORD.finditer(line):
        gap = line[end : match.start()]
        if bare := _POSSESSIVE.sub("", match[0]):
            owns = match[0].endswith(("'s", "’s"))
            yield NameWord(bare, gap, end == 0 or bool(_STARTS.search(gap)), owns)
        end = match.end()


def _runs(words: Sequence[NameWord]) -> Iterator[tuple[int, list[NameWord]]]:
    """Yield the runs of capitalised words, each with the index of its first word."""
    place = 0
    while place < len(words):
        if not (words[place].is_capitalised or _CAMEL.match(words[place].text)):
            place += 1
            continue
        end = place + 1
        while end - place < _MAX_NAME_WORDS and (step := _continuation(words, end)):
            end += step
        yield place, list(words[place:end])
        place = end


def _continuation(words: Sequence[NameWord], end: int) -> int:
    """Return how many words continue the run before `end`: 0, 1, or 2 for "of" and a name."""
    following = [word.gap == " " and not word.starts for word in words[end : end + 2]]
    if following[:1] == [True] and words[end].is_capitalised:
        return 1
    binds = following == [True, True] and words[end].plain in _BINDING
    return 2 if binds and words[end + 1].is_capitalised else 0


def _name(
    words: Sequence[NameWord], place: int, run: list[NameWord], is_german: bool
) -> Sequence[NameWord] | None:
    """Return the part of a run that is a name, or None."""
    after = words[place + len(run) : place + len(run) + 2]
    before = words[place - 1].plain if place else ""
    no_names = _STARTING if run[0].starts else _CAPITALISED | {"the", "a", "an"}
    doubtful = run[0].starts or is_german
    while run and run[0].plain in no_names | _TITLES | _BINDING:
        before, run = run[0].plain, run[1:]
        doubtful = is_german
    while run and run[-1].plain in _CAPITALISED:
        run = run[:-1]
    if not run:
        return None
    is_sure = len(run) > 1 or run[0].owns or before in _ANNOUNCING or _follows_a_person(after)
    return run if is_sure or not doubtful else None


def _follows_a_person(after: Sequence[NameWord]) -> bool:
    """Return whether the words after a run show that it names a person."""
    if not after:
        return False
    if _QUOTED.match(after[0].gap):
        return True
    if after[0].gap != " ":
        return False
    return (
        after[0].plain in _VERBS
        or bool(_AMBIGUOUS_VERB.match(" ".join(word.plain for word in after)))
        or (after[0].plain in _CONJUNCTIONS and len(after) > 1 and after[1].is_capitalised)
    )
