"""The extractive summariser: quotes the most important sentences, without a model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory.layers.lines import Line, roll_up
from memory.layers.summarising import corrections
from memory.layers.summarising.base import (
    EXTRACTIVE,
    MAX_LINES,
    ConversationSummary,
    Digest,
    DigestChild,
)
from memory.layers.summarising.quotations import is_question, passages
from memory.layers.summarising.salience import INFORMATIVE, ScoredPassage, scored_passages
from memory.layers.summarising.transcript import TranscriptLine, shorten

if TYPE_CHECKING:
    from memory.layers.model_calls import CallRecorder

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


class ExtractiveSummariser:
    name = EXTRACTIVE

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: "CallRecorder"
    ) -> ConversationSummary:
        return ConversationSummary(conversation(lines))

    def digest(
        self, label: str, children: Sequence[DigestChild], recorder: "CallRecorder"
    ) -> Digest:
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
    people = corrections.joined(_scored(lines, is_assistant=False), lines)
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
