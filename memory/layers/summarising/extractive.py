"""The summariser without a model: it picks what was said and quotes it, and invents nothing."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memory.layers import losses
from memory.layers.bank import SEPARATOR
from memory.layers.summarising.base import Asks, Digest, Telling, audited
from memory.layers.summarising.parts import Line, sentences, shortened, words
from memory.layers.summarising.salience import salience, terms

# DESIGN, "Summaries".
MOST_QUOTES = 3
MOST_WORDS = 80
FEWEST_DIGEST_BULLETS = 2
MOST_DIGEST_BULLETS = 4
MOST_DIGEST_WORDS = 120

# Words of one quote; a longer sentence is cut, and says so.
_LONGEST_QUOTE = 40
# Characters of a speaker's name.
_LONGEST_NAME = 60
# What scores less tells nothing worth keeping, as long as something else does.
_INFORMATIVE = 1.0
# What scores less is a greeting, thanks or assent.
_TELLING = 0.3
_ASKING = ("?", "？", "؟")
# Two sentences with this share of their words in common say the same.
_SAME = 0.6
# What is worth less than this share of the best one is left out, even if there is room.
_WORTHWHILE = 0.25
# Only so many of the best sentences are weighed against each other.
_SHORTLIST = 100

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# What Markdown puts before a line; rows of tables and rules say nothing by themselves.
_MARKS = re.compile(r"^(?:[#>*+\-•]+\s+|\d+[.)]\s+)+")
_NO_PROSE = re.compile(r"^\s*(?:\||[-=*_]{3,}\s*$)")

# A bullet that quotes: who, what, and the period it is from if that was added.
_QUOTING = re.compile(r"^(?P<head>[^“]{0,80}“)(?P<body>.*)(?P<tail>”[^”]*)$", re.DOTALL)
_DATED = re.compile(r"\([^()]*\b\d{4}\)$")


class Extractive:
    """The summariser that quotes, as `summarising.get` gives it."""

    name = "extractive"

    def conversation(self, lines: Sequence[Line], previous: str, booking: Asks) -> Telling:
        return Telling(conversation(lines))

    def digest(self, label: str, children: Sequence[tuple[str, str]], booking: Asks) -> Digest:
        text = digest(children)
        return audited(text, losses.audit(children, text))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """`place` orders sentences in time; `source` is the line or the child it comes from."""

    text: str
    source: int
    place: int
    group: str
    terms: frozenset[str]
    score: float = 0.0


def conversation(lines: Sequence[Line]) -> str:
    """One to three bullets of at most MOST_WORDS words that quote the most telling sentences.

    People come before the assistant, whose lines are quoted only where no person said anything
    that tells something. Empty only for no lines at all.
    """
    if not lines:
        return ""
    speakers = {name.casefold() for line in lines for name in line.speaker.split()}
    told = _scored(_sentences_of(lines), speakers)
    people = [one for one in told if not lines[one.source].is_assistant]
    pool = _pool(people, [one for one in told if lines[one.source].is_assistant])
    if not pool:
        return f"- {_name(lines[0].speaker)}: “…”"
    bullets = {}
    room = MOST_WORDS
    for one in _picked(pool, MOST_QUOTES):
        head = f"- {_name(lines[one.source].speaker)}: “"
        bullet = f"{head}{shortened(one.text, min(_LONGEST_QUOTE, MOST_WORDS - words(head)))}”"
        if words(bullet) <= room:
            bullets[one.place] = bullet
            room -= words(bullet)
    return "\n".join(bullets[place] for place in sorted(bullets))


def _pool(people: list[_Sentence], assistant: list[_Sentence]) -> list[_Sentence]:
    """What may be quoted: of people what informs, else what tells at least something. Where they
    only asked, what the assistant answered stands beside it.
    """
    pool = [one for one in people if one.score >= _INFORMATIVE]
    pool = pool or [one for one in people if one.score >= _TELLING]
    if all(one.text.endswith(_ASKING) for one in pool):
        pool += [one for one in assistant if one.score >= _INFORMATIVE]
    return pool or sorted(people or assistant, key=lambda one: -one.score)[:1]


def digest(children: Sequence[tuple[str, str]]) -> str:
    """Two to four bullets of at most MOST_DIGEST_WORDS words, chosen from the children's bullets.

    `children` are (label, summary), the oldest first. Each child is drawn on once before any is
    drawn on twice; among them the most telling, then the newest. Where the children's periods
    differ, a bullet names the one it is from. Empty only when all summaries are.
    """
    periods = [" ".join(label.partition(SEPARATOR)[0].split()) for label, _ in children]
    found = _scored(_bullets_of([summary for _, summary in children]))
    if not found:
        return ""
    newest = max(len(children) - 1, 1)
    found = [replace(one, score=(1 + one.score) * (1 + 0.3 * one.source / newest)) for one in found]
    first = _picked(_best_of_each(found), MOST_DIGEST_BULLETS)
    further = sorted((one for one in found if one not in first), key=lambda one: -one.score)
    chosen = [*first, *further][:MOST_DIGEST_BULLETS]
    dated = len(set(periods)) > 1
    bullets = {}
    room = MOST_DIGEST_WORDS
    for number, one in enumerate(chosen):
        # The first may not take what the second needs.
        share = room // 2 if number + 1 < min(FEWEST_DIGEST_BULLETS, len(chosen)) else room
        bullet = _bullet(one.text, periods[one.source] if dated else "", share)
        if words(bullet) <= room:
            bullets[one.place] = bullet
            room -= words(bullet)
    return "\n".join(bullets[place] for place in sorted(bullets))


def _sentences_of(lines: Iterable[Line]) -> Iterator[_Sentence]:
    place = 0
    for source, line in enumerate(lines):
        for text in _prose(line.text):
            place += 1
            yield _Sentence(text, source, place, line.speaker, terms(text))


def _bullets_of(summaries: Iterable[str]) -> Iterator[_Sentence]:
    place = 0
    for source, summary in enumerate(summaries):
        for line in summary.splitlines():
            text = " ".join(_MARKS.sub("", line).split())
            if text:
                place += 1
                yield _Sentence(text, source, place, str(source), terms(text))


def _prose(text: str) -> Iterator[str]:
    """The sentences of a message, without code, tables and the marks of Markdown; the bare text
    when that is all there is.
    """
    bare = _CODE.sub("\n", text)
    found = False
    for line in bare.splitlines():
        if not _NO_PROSE.match(line):
            for sentence in sentences(" ".join(_MARKS.sub("", line.strip()).split())):
                found = True
                yield sentence.strip()
    if not found and text.strip():
        yield " ".join(text.split())


def _scored(sentences: Iterable[_Sentence], speakers: Collection[str] = ()) -> list[_Sentence]:
    found = list(sentences)
    # A term counts once for each line it stands in, so that one long line does not set the topic.
    lines_with: Counter[str] = Counter()
    seen: set[tuple[int, str]] = set()
    for one in found:
        fresh = [term for term in one.terms if (one.source, term) not in seen]
        lines_with.update(fresh)
        seen.update((one.source, term) for term in fresh)
    return [
        replace(one, score=salience(one.text, one.terms, lines_with, speakers)) for one in found
    ]


def _picked(pool: Iterable[_Sentence], most: int) -> list[_Sentence]:
    """Up to `most` of the best that say different things, the best first (maximal marginal
    relevance: Carbonell and Goldstein, 1998).
    """
    left = sorted(pool, key=lambda one: (-one.score, one.place))[:_SHORTLIST]
    picked = left[:1]
    while left and len(picked) < most:
        worth = {one.place: _marginal(one, picked) for one in left}
        left = [one for one in left if worth[one.place] > _WORTHWHILE * picked[0].score]
        if left:
            picked.append(max(left, key=lambda one: (worth[one.place], -one.place)))
    return picked


def _marginal(one: _Sentence, picked: Iterable[_Sentence]) -> float:
    """What `one` is worth beside those picked; 0 when one of them says the same."""
    worth = one.score
    for other in picked:
        shared = _overlap(one.terms, other.terms)
        if shared >= _SAME or one.text == other.text:
            return 0.0
        worth *= 1 - shared
        # Who or what was not heard yet goes first.
        worth *= 0.85 if one.group == other.group else 1.0
    return worth


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _best_of_each(found: Iterable[_Sentence]) -> list[_Sentence]:
    best: dict[int, _Sentence] = {}
    for one in found:
        if one.source not in best or one.score > best[one.source].score:
            best[one.source] = one
    return list(best.values())


def _bullet(text: str, period: str, most: int) -> str:
    """A child's bullet in at most `most` words, with its period unless it has one already."""
    tail = f" ({period})" if period and not _DATED.search(text) else ""
    quoting = _QUOTING.match(text)
    head, body, end = quoting.group("head", "body", "tail") if quoting else ("", text, "")
    room = most - words(f"- {head}{end}{tail}")
    return f"- {head}{shortened(body, max(room, 1))}{end}{tail}"


def _name(speaker: str) -> str:
    return " ".join(speaker.split())[:_LONGEST_NAME]
