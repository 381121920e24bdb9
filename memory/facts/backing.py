"""Whether a fact stands in what was said: nothing is kept that was made up. Pure."""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_SMALL = re.compile(r"[a-z]{1,2}")
# Letters that inflection may change at the end of a word, and what must be left of it.
_ENDING = 2
_STEM = 4


def backed(words: str, texts: Iterable[str]) -> bool:
    """Whether every word of `words` occurs in one of `texts`, be it inflected. A number has to
    stand there as it is. Words of one or two letters tell nothing, and what has no other is not
    backed.
    """
    material = _plain("\n".join(texts))
    said = set(_WORD.findall(material))
    asked = [word for word in _WORD.findall(_plain(words)) if not _SMALL.fullmatch(word)]
    return bool(asked) and all(_occurs(word, said, material) for word in asked)


def _occurs(word: str, said: set[str], material: str) -> bool:
    if word in said:
        return True
    if any(map(str.isdigit, word)):
        return False
    # In scripts without spaces a run of letters is no word.
    if not word.isascii() and word in material:
        return True
    stem = word[: max(_STEM, len(word) - _ENDING)]
    return len(word) >= _STEM and any(one.startswith(stem) for one in said)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
