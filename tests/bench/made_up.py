"""Talk that nobody held: as much as one likes, always the same for a seed, and nothing twice."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from memory.recall.embedders.static import static

# The commonest words of English, as far as few texts do without them; and how many words there
# are beside them, from the common to the rare.
FUNCTION_WORDS = 120
SUBJECTS = 60


@lru_cache(maxsize=1)
def words() -> list[str]:
    """Whole words, the commonest first: the vocabulary of the built-in model has that order."""
    return [word for word in static().vocabulary if word.isascii() and word.isalpha() and word[1:]]


def talks(seed: int, texts: int, each: int) -> Iterator[list[str]]:
    """So many texts in conversations of `each`, each of which has its own subjects."""
    chance = np.random.default_rng(seed)
    known = words()
    rarer = len(known) - FUNCTION_WORDS
    for _ in range(0, texts, each):
        subjects = FUNCTION_WORDS + (rarer * chance.random(SUBJECTS) ** 2).astype(int)
        lengths = chance.integers(8, 40, each)
        count = int(lengths.sum())
        picked = np.where(
            chance.random(count) < 0.55,
            (FUNCTION_WORDS * chance.random(count) ** 2).astype(int),
            subjects[(SUBJECTS * chance.random(count) ** 1.5).astype(int)],
        )
        said = [known[place] for place in picked.tolist()]
        ends = np.cumsum(lengths).tolist()
        yield [
            " ".join(said[end - length : end]).capitalize() + "."
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]


def question(text: str) -> str:
    """What somebody might ask who remembers three words of `text`."""
    told = sorted(text.lower().strip(".").split(), key=words().index)
    return f"What was said about {told[-1]}, {told[-3]} and {told[-5]}?"
