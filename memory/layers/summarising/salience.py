"""Salience: a score for how much a sentence of a conversation is worth remembering. Pure.

The score adds up dates, numbers, names, decisions and recurring words. The factors for acts and
news were fitted on LoCoMo conversations and rounded by hand. The words are in cues.toml. For
languages without words there, only facts and recurring words count.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.layers.lines import content_words
from memory.layers.summarising.quotations import (
    MAX_SENTENCE_CHARS,
    Passage,
    is_open_question,
    is_question,
)
from memory.layers.summarising.transcript import TranscriptLine, count_words

# The minimum score of a sentence that is worth quoting.
INFORMATIVE = 1.0
# A factor for pairs, because two sentences take more room.
PAIR_FACTOR = 0.6
# Factors for sentences that report an act, an outcome, something in progress, or a day near that
# of the message.
ACT_FACTOR = 1.6
OUTCOME_FACTOR = 1.5
UNDER_WAY_FACTOR = 1.3
NEAR_DAY_FACTOR = 1.3
# Applied once for each word that announces news, at most three times.
NEWS_FACTOR = 1.25
# Factors for the first sentence of a message, and for messages early in the conversation, because
# people begin with their news.
FIRST_FACTOR = 1.3
EARLY_FACTOR = 1.2
SHORT_FACTOR = 0.7
# For a brief for the assistant, which its result makes obsolete.
REQUEST_FACTOR = 0.4
# Applied once for each word beyond USUAL_WORDS.
LONG_FACTOR = 0.98
EARLY_SHARE = 0.35
SHORT_WORDS = 8
USUAL_WORDS = 20

_CUES = tomllib.loads(Path(__file__).with_name("cues.toml").read_text(encoding="utf-8"))


def _cue(name: str, start: str = r"\b") -> re.Pattern[str]:
    """Return the pattern for the words of the section `name`, which begin after `start`."""
    words = "|".join(_CUES[name]["words"])
    unspaced = "".join(f"|{word}" for word in _CUES[name].get("unspaced", ()))
    return re.compile(rf"{start}(?:{words})\b{unspaced}", re.IGNORECASE)


# The name of a day, a month or a time, and any number.
_DATE = _cue("dates")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DECISION = _cue("decisions")
_ABOUT_SELF = _cue("about_self")
_ABOUT_YOU = _cue("about_you")
_PLEASANTRY = _cue("pleasantries", r"^\W*(?:(?:well|oh|ah|aw+|haha|man|so|and|but),? )*+")
_REQUEST = _cue("requests", r"^\W*")
_ACT = _cue("acts")
_OUTCOME = _cue("outcomes")
_UNDER_WAY = _cue("under_way")
_NEAR_DAY = _cue("near_days")
_NEWS = _cue("news")
_AMOUNT = re.compile(
    r"[$€£¥₹]\s?\d|\d\s?(?:[%€$£¥]|k\b|kg\b|km\b|gb\b|mb\b|ms\b|eur\b|usd\b|h\b)", re.I
)
_IDENTIFIER = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.\w+|`[^`]+`|\b[A-Z]{2,}-\d+\b|\B#\d+\b|\b\w+_\w+\b"
    r"|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b|\B/[\w.-]+/[\w./-]+|(?<![\w-])[\w-]{1,80}\.(?:py|js|ts|md|ya?ml"
    r"|json|sql|toml|csv|pdf|txt|conf)\b|\bv?\d+\.\d+\.\d+\b"
)
_CAPITALISED_WORD = re.compile(r"(?<=[\w,;:] )[\"“'‘(]?([A-Z\u00c0-\u00de\u0410-\u042f][\w’'&-]+)")
_SELF = {"i", "i'm", "i’m", "i've", "i’ve", "i'll", "i’ll", "i'd", "i’d"}


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage of the message at the index `source`. `place` is its position in order of time.

    `corrected` is the index of an earlier message that the passage quotes and corrects.
    """

    passage: Passage
    source: int
    place: int
    terms: frozenset[str]
    score: float
    corrected: int | None = None


def scored_passages(
    lines: Sequence[TranscriptLine], passages: Sequence[tuple[int, Passage]]
) -> list[ScoredPassage]:
    """Score passages, which are pairs of the index of their message in `lines` and the passage."""
    speakers = {name.casefold() for line in lines for name in line.speaker.split()}
    all_terms = [terms_of(passage.original) for _, passage in passages]
    # A term counts once for each message, so that one long message does not set the topic.
    in_lines = {
        (source, term)
        for (source, _), terms in zip(passages, all_terms, strict=True)
        for term in terms
    }
    lines_with = Counter(term for _, term in in_lines)
    latest_early = EARLY_SHARE * (len(lines) - 1)
    return [
        ScoredPassage(
            passage,
            source,
            place,
            terms,
            _salience(passage.original[:MAX_SENTENCE_CHARS], terms, lines_with, speakers)
            * _novelty(passage, is_early=source <= latest_early),
        )
        for place, ((source, passage), terms) in enumerate(zip(passages, all_terms, strict=True))
    ]


def particulars(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words for days and times in the sentence `text`, and its numbers.

    Only MAX_SENTENCE_CHARS characters are read.
    """
    text = text[:MAX_SENTENCE_CHARS]
    dates = frozenset(match.casefold() for match in _DATE.findall(text))
    return dates, frozenset(_NUMBER.findall(text))


def terms_of(text: str) -> frozenset[str]:
    """Return the terms of a sentence: its content words, without short ones."""
    return frozenset(
        word
        for word in content_words(text)
        if len(word) > 3 or word.isdigit() or not word.isascii()
    )


def _salience(
    text: str, about: frozenset[str], lines_with: Mapping[str, int], speakers: Collection[str]
) -> float:
    """Return the score of the sentence `text`: informative from about 1.0, rarely above 5.

    `about` are the terms of the sentence. `lines_with` is the number of messages that contain each
    term. `speakers` are the case-folded names of the participants, which carry no information.
    """
    facts = _facts(text, speakers)
    recurring = sum(math.log2(lines_with[term]) for term in about) / math.sqrt(len(about) + 1)
    score = facts + 0.35 * min(recurring, 4.0) + 0.12 * min(len(about), 10)
    if _ABOUT_SELF.search(text):
        score += 0.6
    elif _ABOUT_YOU.search(text):
        score *= 0.6
    if _PLEASANTRY.match(text):
        score *= 0.7 if facts >= 2 else 0.4
    if is_open_question(text):
        score += 1.5
    elif is_question(text):
        score *= 0.6 if facts >= 1 and len(about) >= 4 else 0.35
    return score * _fitness(count_words(text), facts)


def _facts(text: str, speakers: Collection[str]) -> float:
    """Return a score for dates, numbers, names and similar particulars. Repetitions count less."""
    names = {name for name in _CAPITALISED_WORD.findall(text) if name.casefold() not in _SELF}
    absent = [name for name in names if name.casefold() not in speakers]
    numbers = len(_NUMBER.findall(text))
    return (
        1.0 * bool(_DATE.search(text))
        + 0.8 * min(numbers, 2)
        + 0.6 * bool(_AMOUNT.search(text))
        + 0.8 * min(len(_IDENTIFIER.findall(text)), 2)
        + 0.6 * min(len(absent), 3)
        + 0.9 * bool(_DECISION.search(text))
    )


def _fitness(length: int, facts: float) -> float:
    """Return a factor for the length: short sentences contain little, long ones take much room."""
    if length < 4:
        return 0.75 if facts else 0.3
    if length < 7:
        return 0.75
    return 1.0 if length <= 32 else 0.8


def _novelty(passage: Passage, is_early: bool) -> float:
    """Return a factor for acts and news, which are worth more than feelings about them."""
    text = passage.text[:MAX_SENTENCE_CHARS]
    factor = PAIR_FACTOR if passage.is_pair else 1.0
    if _ACT.search(text):
        factor *= ACT_FACTOR
    elif _OUTCOME.search(text):
        factor *= OUTCOME_FACTOR
    elif _UNDER_WAY.search(text):
        factor *= UNDER_WAY_FACTOR
    if _NEAR_DAY.search(text):
        factor *= NEAR_DAY_FACTOR
    factor *= NEWS_FACTOR ** min(len(_NEWS.findall(text)), 3)
    if _REQUEST.match(text):
        factor *= REQUEST_FACTOR
    if passage.is_first:
        factor *= FIRST_FACTOR
    if is_early:
        factor *= EARLY_FACTOR
    words = count_words(text)
    if words < SHORT_WORDS:
        factor *= SHORT_FACTOR
    return factor * LONG_FACTOR ** max(0, words - USUAL_WORDS)
