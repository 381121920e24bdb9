"""The extractive summariser: quotes the most important sentences, without a model.

A statement that is corrected later in the conversation is quoted only with its correction.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from memory.layers.lines import Line, roll_up
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising.base import (
    EXTRACTIVE,
    MAX_LINES,
    ConversationSummary,
    Digest,
    DigestChild,
)
from memory.layers.summarising.quotations import Passage, either, is_question, passages
from memory.layers.summarising.salience import (
    INFORMATIVE,
    ScoredPassage,
    particulars,
    scored_passages,
    terms_of,
)
from memory.layers.summarising.transcript import TranscriptLine, count_words, shorten

# The number of messages per line of a summary, which has between MIN_LINES and MAX_LINES lines.
# People's messages to an assistant are briefs and results, and few of them are small talk.
MESSAGES_PER_LINE = 6
MESSAGES_PER_LINE_WITH_ASSISTANT = 2
MIN_LINES = 3
# The maximum number of words in a quotation. A longer sentence is cut and ends in an ellipsis.
MAX_QUOTE_WORDS = 40
_MAX_NAME_CHARS = 60
# Two sentences are similar if they share this part of the terms of the shorter sentence.
_SAME = 0.6
# The number of best sentences that are compared with each other.
_SHORTLIST_SIZE = 100
# The maximum number of messages between a statement and its correction.
MAX_DISTANCE = 8
# The maximum numbers of corrections of a conversation, and of sentences compared with each.
MAX_CORRECTIONS = 20
MAX_COMPARED = 60
# The maximum number of words of a correction and of the statement that is quoted before it. With
# the ellipsis between them, they are MAX_QUOTE_WORDS.
MAX_CORRECTION_WORDS = 22
MAX_CORRECTED_WORDS = 17
# A correction shares this number of terms with the statement, unless it is short ("No, Tuesday.")
# or begins clearly ("No wait, …").
MIN_SHARED_TERMS = 2
SHORT_WORDS = 8


def _beginning(*names: str) -> re.Pattern[str]:
    start = rf"^\W{{0,5}}(?:{either('hesitations')}\W{{1,3}}){{0,3}}"
    return re.compile(rf"{start}{either(*names)}(?!\w)", re.IGNORECASE)


_CORRECTION = _beginning("corrections", "clear_corrections")
_CLEAR = _beginning("clear_corrections")


class ExtractiveSummariser:
    name = EXTRACTIVE

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: CallRecorder
    ) -> ConversationSummary:
        return ConversationSummary(conversation(lines))

    def digest(self, label: str, children: Sequence[DigestChild], recorder: CallRecorder) -> Digest:
        return Digest.audited(roll_up(child.lines for child in children), children)


def conversation(lines: Sequence[TranscriptLine]) -> list[Line]:
    """Return three to sixteen quotations, the most important first, with one for every six
    messages, or for every two with an assistant.

    Only sentences that can be understood alone are quoted. If there are none, one other sentence is
    quoted. The assistant is quoted only if no person wrote anything informative. The result is
    empty only if `lines` is empty.
    """
    with_assistant = any(line.is_assistant for line in lines)
    per_line = MESSAGES_PER_LINE_WITH_ASSISTANT if with_assistant else MESSAGES_PER_LINE
    number = min(max(-(-len(lines) // per_line), MIN_LINES), MAX_LINES)
    people = _joined(_scored(lines, is_assistant=False), lines)
    alone = [it for it in people if it.passage.stands_alone]
    picked = _pick((it for it in alone if it.score >= INFORMATIVE), number) or _pick(alone, 1)
    if not picked:
        # One is enough, because a reader would not understand several of them better.
        statements = (it for it in people if not is_question(it.passage.text))
        picked = _pick((it for it in statements if it.score >= INFORMATIVE), 1)
    if not picked:
        assistant = _scored(lines, is_assistant=True)
        picked = _pick((it for it in assistant if it.passage.stands_alone), MIN_LINES)
        picked = picked or _pick(people or assistant, 1)
    if not picked and lines:
        return [_line(lines[0], lines[:1], "…", 0.0)]
    return [_quote(lines, it) for it in picked]


def _scored(lines: Sequence[TranscriptLine], is_assistant: bool) -> list[ScoredPassage]:
    """Score the passages of people, or those of the assistant, which often writes much more."""
    return scored_passages(
        lines,
        [
            (source, passage)
            for source, line in enumerate(lines)
            if line.is_assistant == is_assistant
            for passage in passages(line.text, is_file=line.is_file)
        ],
    )


def _joined(
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
            after = shorten(text, MAX_CORRECTION_WORDS)
            text = f"{before} … {after}".replace("… …", "…")
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
    # A day or number that is not quoted does not count.
    text = shorten(correction.passage.text, MAX_CORRECTION_WORDS)
    dates, numbers = particulars(text)
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


def _pick(pool: Iterable[ScoredPassage], number: int) -> list[ScoredPassage]:
    """Return up to `number` of the best passages that are not similar to each other, best first.

    Each score is reduced by the similarity to passages picked earlier (maximal marginal relevance:
    Carbonell and Goldstein, 1998).
    """
    rest = sorted(pool, key=lambda it: (-it.score, it.place))[:_SHORTLIST_SIZE]
    picked: list[ScoredPassage] = []
    while rest and len(picked) < number:
        best = max(rest, key=lambda it: (it.score, -it.place))
        picked.append(best)
        rest = [replace(it, score=worth) for it in rest if (worth := _worth_beside(it, best))]
    return picked


def _worth_beside(sentence: ScoredPassage, picked: ScoredPassage) -> float:
    """Return the score of a passage if `picked` is quoted too; 0 if the two are similar."""
    smaller = min(len(sentence.terms), len(picked.terms))
    overlap = len(sentence.terms & picked.terms) / smaller if smaller else 0.0
    if sentence.passage.text == picked.passage.text:
        return 0.0
    # With another number, a similar sentence says something else.
    is_other = any(term.isdigit() for term in sentence.terms - picked.terms)
    return 0.0 if overlap >= _SAME and not is_other else sentence.score * (1 - overlap)


def _quote(lines: Sequence[TranscriptLine], picked: ScoredPassage) -> Line:
    source = lines[picked.source]
    # "Yesterday" in a corrected statement is counted from its own day.
    sources = [source] if picked.corrected is None else [lines[picked.corrected], source]
    line = _line(sources[0], sources, picked.passage.text, picked.score)
    return replace(line, place=picked.place)


def _line(
    first: TranscriptLine, sources: Sequence[TranscriptLine], text: str, score: float
) -> Line:
    return Line(
        text=shorten(text, MAX_QUOTE_WORDS),
        day=first.at.date(),
        speaker=" ".join(first.speaker.split())[:_MAX_NAME_CHARS],
        sources=tuple(dict.fromkeys(source.id for source in sources if source.id is not None)),
        score=round(score, 3),
    )
