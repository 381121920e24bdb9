"""Content words: the words of a sentence that carry its meaning, without stop words. Pure."""

import re
from pathlib import Path

# The maximum number of characters that are read.
MAX_CHARS = 1_000

_WORD = re.compile(r"[^\W_][\w’'-]*")
_UNSPACED_RUN = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
# English, German, French and Spanish stop words.
_STOP_WORDS = frozenset(
    Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").split()
)


def content_words(text: str) -> frozenset[str]:
    """Return the case-folded content words of `text`. For scripts without spaces, return the pairs
    of adjacent characters.
    """
    words: set[str] = set()
    for word in _WORD.findall(text[:MAX_CHARS].casefold()):
        runs = _UNSPACED_RUN.findall(word)
        for run in runs:
            words.update(run[start : start + 2] for start in range(max(len(run) - 1, 1)))
        if not runs and (len(word) > 1 or word.isdigit()):
            words.add(word)
    return frozenset(words) - _STOP_WORDS
