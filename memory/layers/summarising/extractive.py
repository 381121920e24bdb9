"""The extractive summariser: it works without a model, and only quotes.

It selects sentences by their salience: dates, numbers, names, decisions, recurring words. The
weights were set by reading the sentences that they select on LoCoMo's conversations and on project
talk. The words are in cues.toml. For languages that are not in it, the score uses only facts and
recurring words.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory.layers.lines import MAX_SPEAKER_CHARS, Line
from memory.layers.summarising.base import (
    EXTRACTIVE,
    ConversationSummary,
    Digest,
    DigestChild,
)
from memory.layers.summarising.transcript import TranscriptLine, count_words, sentences, shorten

if TYPE_CHECKING:
    from memory.layers.model_calls import CallRecorder

# DESIGN, "Summaries".
MAX_QUOTES = 3
MAX_WORDS = 80
MAX_DIGEST_LINES = 4

# A longer sentence is cut and ends in an ellipsis.
_MAX_QUOTE_WORDS = 40
# The part of a message that is read, and the part of a sentence that is scored. A quotation is
# shorter.
_MAX_READ_CHARS = 100_000
_MAX_SCORED_CHARS = 1_000
# Scores. A sentence with a lower score is left out if there is a more informative one.
_INFORMATIVE = 1.0
# A sentence with a lower score is a greeting, thanks or assent.
_MIN_SCORE = 0.3
_QUESTION_MARKS = ("?", "？", "؟")
# Two sentences that share this part of their terms count as similar.
_SAME = 0.6
# A sentence worth less than this share of the best one is left out, even if there is room.
_MIN_SHARE_OF_BEST = 0.25
# The number of best sentences that are compared with each other.
_SHORTLIST_SIZE = 100

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# Markdown before a line; rows of tables and rules are no prose.
_MARKS = re.compile(r"^(?:[#>*+\-•]+\s+|\d+[.)]\s+)+")
_NO_PROSE = re.compile(r"^\s*(?:\||[-=*_]{3,}\s*$)")

_CUES = tomllib.loads((Path(__file__).parent / "cues.toml").read_text(encoding="utf-8"))


def _cue(name: str, start: str = r"\b") -> re.Pattern[str]:
    words = "|".join(_CUES[name]["words"])
    unspaced = "".join(f"|{word}" for word in _CUES[name].get("unspaced", ()))
    return re.compile(rf"{start}(?:{words})\b{unspaced}", re.IGNORECASE)


_DATE = _cue("dates")
_DECISION = _cue("decisions")
_ABOUT_SELF = _cue("about_self")
_ABOUT_YOU = _cue("about_you")
_PLEASANTRY = _cue("pleasantries", r"^\W*(?:(?:well|oh|ah|aw+|haha|man|so|and|but),? )*+")
_OPEN = _cue("open_questions")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
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
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")
_TERM = re.compile(r"[^\W_][\w’'-]*")
# Words that carry no topic, in several languages. Words of up to three letters are never terms.
_STOP = frozenset((Path(__file__).parent / "stopwords.txt").read_text(encoding="utf-8").split())
_UNSPACED_RUN = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class ExtractiveSummariser:
    name = EXTRACTIVE

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: "CallRecorder"
    ) -> ConversationSummary:
        return ConversationSummary(conversation(lines))

    def digest(
        self, label: str, children: Sequence[DigestChild], recorder: "CallRecorder"
    ) -> Digest:
        return Digest.audited(digest([child.lines for child in children]), children)


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """`place` orders sentences in time; `source` is the index of its line or child."""

    text: str
    source: int
    place: int
    group: str
    terms: frozenset[str]
    score: float = 0.0


def conversation(lines: Sequence[TranscriptLine]) -> list[Line]:
    """Return one to three lines of together at most MAX_WORDS words, the best sentences.

    The assistant is quoted only if no person wrote anything informative. The result is empty only
    if there are no lines.
    """
    if not lines:
        return []
    speakers = {name.casefold() for line in lines for name in line.speaker.split()}
    scored = _scored(
        (
            (text, source, line.speaker)
            for source, line in enumerate(lines)
            for text in _prose(line.text)
        ),
        speakers,
    )
    people = [sentence for sentence in scored if not lines[sentence.source].is_assistant]
    pool = _pool(people, [sentence for sentence in scored if lines[sentence.source].is_assistant])
    if not pool:
        return [_quote(lines[0], "…")]
    quotes = {}
    room = MAX_WORDS
    for sentence in _pick(pool, MAX_QUOTES):
        line = lines[sentence.source]
        head = count_words(f"- {_name(line.speaker)}: “")
        max_words = min(_MAX_QUOTE_WORDS, MAX_WORDS - head)
        quote = _quote(line, shorten(sentence.text, max_words), sentence.score)
        if count_words(f"- {quote.shown}") <= room:
            quotes[sentence.place] = quote
            room -= count_words(f"- {quote.shown}")
    return [quotes[place] for place in sorted(quotes)]


def _quote(line: TranscriptLine, text: str, score: float = 0.0) -> Line:
    sources = () if line.id is None else (line.id,)
    return Line(text, line.at.date(), _name(line.speaker), sources, score)


def _pool(people: list[ScoredSentence], assistant: list[ScoredSentence]) -> list[ScoredSentence]:
    """Return the candidates for a quotation: the informative sentences of people, or else their
    other good sentences. If all of these are questions, add the informative sentences of the
    assistant.
    """
    pool = [sentence for sentence in people if sentence.score >= _INFORMATIVE]
    pool = pool or [sentence for sentence in people if sentence.score >= _MIN_SCORE]
    if all(sentence.text.endswith(_QUESTION_MARKS) for sentence in pool):
        pool += [sentence for sentence in assistant if sentence.score >= _INFORMATIVE]
    return pool or sorted(people or assistant, key=lambda sentence: -sentence.score)[:1]


def digest(conversations: Sequence[Sequence[Line]]) -> list[Line]:
    """Return up to MAX_DIGEST_LINES of the lines of the conversations of a period.

    Each conversation contributes its best line before any contributes two.
    """
    ranked = [sorted(lines, key=lambda line: -line.score) for lines in conversations]
    rounds: list[Line] = []
    for place in range(max(map(len, ranked), default=0)):
        turn = [lines[place] for lines in ranked if place < len(lines)]
        rounds += sorted(turn, key=lambda line: -line.score)
    return list({line.shown: line for line in rounds}.values())[:MAX_DIGEST_LINES]


def _prose(text: str) -> Iterator[str]:
    """Yield the sentences of a message, without code, tables and Markdown; the plain text if
    nothing else is left.
    """
    has_prose = False
    text = text[:_MAX_READ_CHARS]
    for line in _CODE.sub("\n", text).splitlines():
        if not _NO_PROSE.match(line):
            for sentence in sentences(" ".join(_MARKS.sub("", line.strip()).split())):
                has_prose = True
                yield sentence.strip()
    if not has_prose and text.strip():
        yield " ".join(text.split())


def _scored(
    texts: Iterable[tuple[str, int, str]], speakers: Collection[str] = ()
) -> list[ScoredSentence]:
    """Score the sentences `texts`, given as (text, source, group), by their beginnings."""
    found = [
        ScoredSentence(text, source, place, group, _terms(text[:_MAX_SCORED_CHARS]))
        for place, (text, source, group) in enumerate(texts, 1)
    ]
    # A term counts once for each line that contains it, so that one long line does not set the
    # topic.
    in_lines = {(sentence.source, term) for sentence in found for term in sentence.terms}
    lines_with = Counter(term for _, term in in_lines)
    return [
        replace(
            sentence,
            score=_salience(
                sentence.text[:_MAX_SCORED_CHARS], sentence.terms, lines_with, speakers
            ),
        )
        for sentence in found
    ]


def _pick(pool: Iterable[ScoredSentence], number: int) -> list[ScoredSentence]:
    """Return up to `number` of the best sentences that are not similar, the best first (maximal
    marginal relevance: Carbonell and Goldstein, 1998).
    """
    rest = sorted(pool, key=lambda sentence: (-sentence.score, sentence.place))[:_SHORTLIST_SIZE]
    picked = rest[:1]
    while rest and len(picked) < number:
        worth = {sentence.place: _marginal_worth(sentence, picked) for sentence in rest}
        rest = [
            sentence
            for sentence in rest
            if worth[sentence.place] > _MIN_SHARE_OF_BEST * picked[0].score
        ]
        if rest:
            picked.append(max(rest, key=lambda sentence: (worth[sentence.place], -sentence.place)))
    return picked


def _marginal_worth(sentence: ScoredSentence, picked: Iterable[ScoredSentence]) -> float:
    """Return the value of a sentence beside the picked sentences; 0 if one of them is similar."""
    worth = sentence.score
    for other in picked:
        smaller = min(len(sentence.terms), len(other.terms))
        overlap = len(sentence.terms & other.terms) / smaller if smaller else 0.0
        if overlap >= _SAME or sentence.text == other.text:
            return 0.0
        worth *= 1 - overlap
        # A speaker or child without a quotation goes first.
        worth *= 0.85 if sentence.group == other.group else 1.0
    return worth


def _name(speaker: str) -> str:
    return " ".join(speaker.split())[:MAX_SPEAKER_CHARS]


def _terms(text: str) -> frozenset[str]:
    """Return the terms of a sentence: its longer words, and character pairs in unspaced scripts."""
    found: set[str] = set()
    for word in _TERM.findall(text.casefold()):
        runs = _UNSPACED_RUN.findall(word)
        for run in runs:
            found.update(run[start : start + 2] for start in range(max(len(run) - 1, 1)))
        if not runs and (len(word) > 3 or word.isdigit()) and word not in _STOP:
            found.add(word)
    return frozenset(found)


def _salience(
    text: str, about: frozenset[str], lines_with: Mapping[str, int], speakers: Collection[str]
) -> float:
    """Return the score of the sentence `text`: informative from about 1.0, rarely above 5.

    `about` are its terms, `lines_with` the number of lines of the conversation with each term, and
    `speakers` the case-folded names of the participants, which carry no information.
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
    if _OPEN.search(text):
        score += 1.5
    elif _QUESTION.search(text):
        score *= 0.6 if facts >= 1 and len(about) >= 4 else 0.35
    return score * _fitness(count_words(text), facts)


def _facts(text: str, speakers: Collection[str]) -> float:
    """Return a score for dates, numbers, names and the like; repetitions count less."""
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
    """Return a factor for the length: short sentences contain little, long sentences take much
    room.
    """
    if length < 4:
        return 0.75 if facts else 0.3
    if length < 7:
        return 0.75
    return 1.0 if length <= 32 else 0.8
