"""Corrections: statements that a later message of the same conversation corrects. Pure.

The extractive summariser quotes a corrected statement only together with its correction.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from memory.layers.summarising.cues import particulars
from memory.layers.summarising.quotations import Passage, is_question
from memory.layers.summarising.salience import ScoredPassage, terms_of
from memory.layers.summarising.transcript import TranscriptLine, count_words, shorten

# The maximum number of messages between a statement and its correction.
MAX_DISTANCE = 8
# The maximum numbers of corrections of a conversation, and of sentences compared with each.
MAX_CORRECTIONS = 20
MAX_COMPARED = 60
# The maximum number of words of a correction and of the statement that is quoted before it.
MAX_CORRECTION_WORDS = 22
MAX_CORRECTED_WORDS = 18
# A correction shares this number of terms with the statement, unless it is short ("No, Tuesday.")
# or begins clearly ("No wait, …").
MIN_SHARED_TERMS = 2
SHORT_WORDS = 8

_WORDS = tomllib.loads(Path(__file__).with_name("quotations.toml").read_text(encoding="utf-8"))


def _beginning(*names: str) -> re.Pattern[str]:
    words = "|".join(word for name in names for word in _WORDS[name]["words"])
    return re.compile(
        rf"^\W{{0,5}}(?:(?:{'|'.join(_WORDS['hesitations']['words'])})\W{{1,3}}){{0,3}}"
        rf"(?:{words})(?!\w)",
        re.IGNORECASE,
    )


_CORRECTION = _beginning("corrections", "clear_corrections")
_CLEAR = _beginning("clear_corrections")


def joined(
    passages: Sequence[ScoredPassage], lines: Sequence[TranscriptLine]
) -> list[ScoredPassage]:
    """Return `passages`, in which each corrected statement is replaced by one passage with the
    statement and its correction.

    If another person corrected the statement, both stay, and the correction gets the higher score.
    """
    result = list(passages)
    for correction in islice(_corrections(passages), MAX_CORRECTIONS):
        statement = _corrected(correction, result)
        if statement is None:
            continue
        same_speaker = lines[statement.source].speaker == lines[correction.source].speaker
        parts = (correction, statement) if same_speaker else (correction,)
        result = [it for it in result if not any(_overlaps(it, part) for part in parts)]
        text = correction.passage.text
        if same_speaker:
            before = shorten(statement.passage.text, MAX_CORRECTED_WORDS)
            text = f"{before} … {text}".replace("… …", "…")
        passage = replace(correction.passage, text=text, stands_alone=True)
        # Without terms, it is not compared with the statement that it corrects.
        terms = correction.terms | statement.terms if same_speaker else frozenset()
        score = max(statement.score, correction.score)
        corrected = statement.source if same_speaker else None
        result.append(
            replace(correction, passage=passage, terms=terms, score=score, corrected=corrected)
        )
        result.sort(key=lambda it: it.place)
    return result


def _corrections(passages: Sequence[ScoredPassage]) -> Iterator[ScoredPassage]:
    """Yield the sentences that begin with a correction, each with the sentences after it."""
    singles = [it for it in passages if not it.passage.is_pair]
    for index, first in enumerate(singles):
        if not _CORRECTION.match(first.passage.original):
            continue
        text, score = first.passage.original, first.score
        for following in singles[index + 1 :]:
            longer = f"{text} {following.passage.original}"
            if following.source != first.source or count_words(longer) > MAX_CORRECTION_WORDS:
                break
            text, score = longer, max(score, following.score)
        text = shorten(text, MAX_CORRECTION_WORDS)
        passage = Passage(text[:1].upper() + text[1:], text, first.passage.is_first, True, False)
        yield replace(first, passage=passage, terms=terms_of(text), score=score)


def _corrected(
    correction: ScoredPassage, passages: Sequence[ScoredPassage]
) -> ScoredPassage | None:
    """Return the statement before `correction` that is about the same, the best match, of equal
    matches the nearest; or None.

    It is the sentence before the correction in the same message. In another message, both have a
    day or both have a number, and the correction has one that the statement lacks.
    """
    dates, numbers = particulars(correction.passage.original)
    text = correction.passage.original
    is_clear = count_words(text) <= SHORT_WORDS or bool(_CLEAR.match(text))
    best, most = None, -1
    earlier = (it for it in reversed(passages) if it.place < correction.place)
    for statement in islice(earlier, MAX_COMPARED):
        if correction.source - statement.source > MAX_DISTANCE:
            break
        if statement.passage.is_pair or is_question(statement.passage.original):
            continue
        if statement.source == correction.source:
            return statement if statement.passage.stands_alone else None
        old_dates, old_numbers = particulars(statement.passage.original)
        if not (old_dates and dates - old_dates or old_numbers and numbers - old_numbers):
            continue
        shared = len(statement.terms & correction.terms) + bool(old_dates & dates)
        if (shared >= MIN_SHARED_TERMS or is_clear) and shared > most:
            best, most = statement, shared
    return best


def _overlaps(passage: ScoredPassage, part: ScoredPassage) -> bool:
    """Return whether two passages of the same message have text in common."""
    one, other = passage.passage.original, part.passage.original
    return passage.source == part.source and (one in other or other in one)
