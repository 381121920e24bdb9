"""The check that the words of a fact occur in the messages, so that no invented fact is kept. Pure.

It is separate from the extraction because forgetting uses it too.
"""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_SHORT_WORD = re.compile(r"[a-z]{1,2}")
# The number of letters at the end of a word that inflection may change, and the minimum number of
# letters before them.
_ENDING_CHARS = 2
_MIN_STEM_CHARS = 4


def is_grounded(words: str, texts: Iterable[str]) -> bool:
    """Return whether every word of `words` occurs in `texts`, possibly inflected.

    A number must occur unchanged. Words of one or two letters are ignored; text without any other
    word is not grounded.
    """
    material = _plain("\n".join(texts))
    vocabulary = set(_WORD.findall(material))
    required = [word for word in _WORD.findall(_plain(words)) if not _SHORT_WORD.fullmatch(word)]
    return bool(required) and all(_occurs(word, vocabulary, material) for word in required)


def _occurs(word: str, vocabulary: set[str], material: str) -> bool:
    if word in vocabulary:
        return True
    if any(map(str.isdigit, word)):
        return False
    # In scripts without spaces, a run of letters is not a word.
    if not word.isascii() and word in material:
        return True
    stem = word[: max(_MIN_STEM_CHARS, len(word) - _ENDING_CHARS)]
    return len(word) >= _MIN_STEM_CHARS and any(known.startswith(stem) for known in vocabulary)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
