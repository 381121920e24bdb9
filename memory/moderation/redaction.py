"""Redacted phrases: words that were redacted in an entry stay out of its later texts.

An entry is rewritten from its messages or children, which still contain the words. Each redacted
phrase is therefore stored as a tombstone of the entry, as a hash. Words are compared without regard
to case and punctuation. A text in which a model states the same in other words is not recognised.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from uuid import UUID

from memory.layers.lines import Line
from memory.models import Entry, Tombstone, TombstoneKind

# Replaces redacted words.
REDACTION_MARK = "[…]"

# A word, or a character of a script without spaces.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the text at index `place`, from `start` to `end`."""

    place: int
    start: int
    end: int
    folded: str


def remember_phrase(entry: Entry, text: str, passage: str) -> None:
    """Store `passage`, which is redacted in `text`, as tombstones of `entry`.

    An occurrence that begins or ends within a word is stored with the whole word.
    """
    words = list(_words([text]))
    phrases = set()
    start = text.find(passage)
    while start >= 0:
        end = start + len(passage)
        phrase = [word for word in words if word.start < end and word.end > start]
        phrases.add(tuple(word.folded for word in phrase))
        start = text.find(passage, end)
    project, kind = entry.project_id, TombstoneKind.REDACTED
    Tombstone.objects.bulk_create(
        [
            Tombstone(project_id=project, kind=kind, subject=_subject(entry, phrase))
            for phrase in phrases
            if phrase
        ],
        ignore_conflicts=True,
    )


@dataclass(frozen=True)
class RedactedPhrases:
    """The phrases that were redacted in `entry`: the subjects of their tombstones, by length."""

    entry: Entry
    subjects: Mapping[int, set[str]]

    @classmethod
    def of(cls, entry: Entry) -> "RedactedPhrases":
        rows = Tombstone.objects.filter(project=entry.project_id, kind=TombstoneKind.REDACTED)
        rows = rows.filter(subject__startswith=_prefix(entry))
        subjects: defaultdict[int, set[str]] = defaultdict(set)
        for subject in rows.values_list("subject", flat=True):
            subjects[int(subject.split(":")[1])].add(subject)
        return cls(entry, subjects)

    def without(self, texts: Sequence[str]) -> list[str]:
        """Return `texts` with REDACTION_MARK in place of the phrases. A phrase may begin in one of
        the texts and end in the next.
        """
        words = list(_words(texts))
        found: set[_Word] = set()
        for length, subjects in self.subjects.items():
            for first in range(len(words) - length + 1):
                window = words[first : first + length]
                if _subject(self.entry, [word.folded for word in window]) in subjects:
                    found.update(window)
        new = list(texts)
        runs = groupby(words, key=lambda word: (word.place, word in found))
        for (place, is_redacted), run in reversed([(key, list(run)) for key, run in runs]):
            if is_redacted:
                before, after = new[place][: run[0].start], new[place][run[-1].end :]
                new[place] = f"{before}{REDACTION_MARK}{after}"
        return new

    def contained_in(self, text: str) -> bool:
        return self.without([text]) != [text]

    def without_in_lines(self, lines: Sequence[Line]) -> list[Line]:
        """Return `lines` with REDACTION_MARK in place of the phrases."""
        texts = iter(self.without([text for line in lines for text in (line.speaker, line.text)]))
        return [replace(line, speaker=next(texts), text=next(texts)) for line in lines]


def redacted_among(project: UUID, entries: Iterable[Entry]) -> set[UUID]:
    """Return the ids of those of `entries` of `project` in which words were redacted."""
    rows = Tombstone.objects.filter(project=project, kind=TombstoneKind.REDACTED)
    prefixes = {subject.partition(":")[0] for subject in rows.values_list("subject", flat=True)}
    return {entry.pk for entry in entries if _prefix(entry)[:-1] in prefixes}


def _words(texts: Sequence[str]) -> Iterator[_Word]:
    for place, text in enumerate(texts):
        for match in _WORD.finditer(text):
            folded = unicodedata.normalize("NFKC", match[0]).casefold()
            yield _Word(place, match.start(), match.end(), folded)


def _prefix(entry: Entry) -> str:
    # The first half of an id stays the same when a project is imported.
    return f"{entry.pk.hex[:16]}:"


def _subject(entry: Entry, phrase: Sequence[str]) -> str:
    prefix = _prefix(entry)
    digest = sha256("\n".join((prefix, *phrase)).encode()).hexdigest()
    return f"{prefix}{len(phrase)}:{digest}"[:64]
