"""Talk that nobody held: as much as one likes, always the same for a seed, and nothing twice.

How its vectors lie is that of real talk: their intrinsic dimension (the ratio of the distances of
the two nearest, https://doi.org/10.1038/s41598-017-11873-y) is 19, as that of LoCoMo's turns. Of
words picked at random it is three times that, and an index for the nearest finds far fewer.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.static import get_static_embedder
from memory.recall.wordpieces import vocabulary

# The commonest words of English, without which few texts do; those that one may talk about; and
# how many words belong to one subject.
FUNCTION_WORDS = 120
COMMON_WORDS = 3_000
SUBJECTS, WORDS_OF_ONE = 300, 100
# Subjects of one conversation.
AT_A_TIME = 3
# How many of a text's words are its subject's, and how many any others.
TELLING, OTHERS = 0.22, 0.05


@lru_cache(maxsize=1)
def words() -> list[str]:
    """Whole words, the commonest first: the vocabulary of the built-in model has that order."""
    return [
        word
        for word in get_static_embedder().vocabulary
        if word.isascii() and word.isalpha() and word[1:]
    ]


@lru_cache(maxsize=1)
def rank() -> dict[str, int]:
    return {word: place for place, word in enumerate(words())}


@lru_cache(maxsize=1)
def subjects() -> NDArray[np.int64]:
    """The words of each subject, by their rank: those that are near one of them in meaning."""
    model = get_static_embedder()
    places = {piece: place for place, piece in enumerate(model.vocabulary)}
    units = vocabulary().unit_vectors(np.array([places[word] for word in words()]))
    span = np.arange(FUNCTION_WORDS, FUNCTION_WORDS + 8_000)
    seeds = np.random.default_rng(0).choice(span, SUBJECTS, replace=False)
    near = units[seeds] @ units[FUNCTION_WORDS:].T
    return np.argpartition(-near, WORDS_OF_ONE, axis=1)[:, :WORDS_OF_ONE] + FUNCTION_WORDS


def talks(seed: int, texts: int, each: int) -> Iterator[list[str]]:
    """So many texts in conversations of `each`, each of which has its own subjects."""
    chance = np.random.default_rng(seed)
    known = words()
    for _ in range(0, texts, each):
        mine = subjects()[chance.choice(SUBJECTS, AT_A_TIME, replace=False)]
        lengths = chance.integers(8, 40, each)
        count = int(lengths.sum())
        about = np.repeat(mine[chance.integers(AT_A_TIME, size=each)], lengths, axis=0)
        kind = chance.random(count)
        telling_words = about[
            np.arange(count), (WORDS_OF_ONE * chance.random(count) ** 1.3).astype(int)
        ]
        other = FUNCTION_WORDS + (COMMON_WORDS * chance.random(count) ** 2).astype(int)
        empty = (FUNCTION_WORDS * chance.random(count) ** 2).astype(int)
        picked = np.where(
            kind < TELLING, telling_words, np.where(kind < TELLING + OTHERS, other, empty)
        )
        messages = [known[place] for place in picked.tolist()]
        ends = np.cumsum(lengths).tolist()
        yield [
            " ".join(messages[end - length : end]).capitalize() + "."
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]


def question(text: str) -> str:
    """What somebody might ask who remembers three words of `text`."""
    sorted_words = sorted(text.lower().strip(".").split(), key=rank().__getitem__)
    return f"What was said about {sorted_words[-1]}, {sorted_words[-2]} and {sorted_words[-4]}?"
