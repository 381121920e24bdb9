"""Estimate which sources of a prompt an answer used. Models do not report this.

The score of a source has three parts: the rare words, names and numbers that it shares with the
answer; with a smaller weight, those that it shares only with the question; and the similarity of
the embeddings. Pure, apart from the embedder.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from memory.layers.lines import content_words
from memory.recall.embedders import Embedder, EmbedderError

# Weights chosen on the set `tuning` of tests/memory/data/likely_used.toml.
QUESTION_WEIGHT = 0.5
NUMBER_WEIGHT = 1.5
ANSWER_LIKENESS, DIALOGUE_LIKENESS = 4.0, 8.0
# The minimum score of a likely source: relative to the best score, and absolute.
MIN_SHARE, MIN_SCORE = 0.85, 8.0
MAX_LIKELY = 3
# The maximum number of characters of an answer or line that are compared.
MAX_CHARS = 1_000

_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
# Number words, because answers often spell out small numbers.
_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split())
}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS |= {word: str(10 * number) for number, word in enumerate(_TENS.split(), start=2)}
_ENDINGS = ("ing", "ed", "es", "s", "ly", "'s", "’s")


def likely_sources(
    question: str, answer: str, sources: Sequence[Sequence[str]], embedder: Embedder | None
) -> list[int]:
    """Return the indexes of the sources that the answer probably used, the most likely first.

    Each source is a sequence of lines. The score of a source is that of its best line.
    """
    scores = score_sources(question, answer, sources, embedder)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    best = scores[order[0]] if order else 0.0
    limit = max(MIN_SCORE, MIN_SHARE * best)
    return [index for index in order[:MAX_LIKELY] if scores[index] >= limit]


def score_sources(
    question: str, answer: str, sources: Sequence[Sequence[str]], embedder: Embedder | None
) -> list[float]:
    lines = [(index, line[:MAX_CHARS]) for index, source in enumerate(sources) for line in source]
    question, answer = question[:MAX_CHARS], answer[:MAX_CHARS]
    if not lines or not answer.strip():
        return [0.0] * len(sources)
    terms = [_terms(line) for _, line in lines]
    frequency = Counter(term for found in terms for term in found)
    rarity = {term: math.log(1 + len(lines) / count) for term, count in frequency.items()}
    answered, asked = _terms(answer), _terms(question)
    likeness = _likeness(question, answer, [line for _, line in lines], embedder)
    scores = [0.0] * len(sources)
    for (index, _), found, alike in zip(lines, terms, likeness, strict=True):
        score = _weight(found & answered, rarity)
        score += QUESTION_WEIGHT * _weight(found & (asked - answered), rarity)
        # Divide by the length, because a long line shares more words by chance.
        score /= 1 + math.log(1 + len(found)) / 4
        scores[index] = max(scores[index], score + float(alike))
    return scores


def _weight(terms: Iterable[str], rarity: dict[str, float]) -> float:
    return sum(
        rarity[term] * (NUMBER_WEIGHT if term[0].isdigit() else 1.0)
        for term in terms
        if term in rarity
    )


def _terms(text: str) -> frozenset[str]:
    """Return the numbers in the text and the stems of its content words."""
    numbers = {number.replace(",", "") for number in _NUMBER.findall(text)}
    words = {word for word in content_words(text) if not word[0].isdigit()}
    every = re.findall(r"[^\W\d_]+", text.casefold())
    numbers |= {_NUMBER_WORDS[word] for word in every if word in _NUMBER_WORDS}
    return frozenset(numbers | {_stem(word) for word in words})


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _likeness(
    question: str, answer: str, lines: Sequence[str], embedder: Embedder | None
) -> np.ndarray:
    """Return, for each line, the part of its score that comes from embeddings."""
    if embedder is None or not embedder.is_local:
        return np.zeros(len(lines))
    try:
        *documents, said, dialogue = embedder.embed_documents(
            [*lines, answer, f"{question} {answer}"]
        )
    except EmbedderError:
        return np.zeros(len(lines))
    matrix = np.asarray(documents)
    return ANSWER_LIKENESS * (matrix @ said) + DIALOGUE_LIKENESS * (matrix @ dialogue)
