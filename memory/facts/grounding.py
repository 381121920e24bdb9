"""Grounding: check that the words of a fact occur in its messages, so that invented facts are
dropped. Pure.

It is a separate module because forgetting uses it too.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from chat.models import Message

_WORD = re.compile(r"\w+")
_SHORT_WORD = re.compile(r"[a-z]{1,2}")
# An inflection may change up to this many letters at the end of a word, if the word has at least
# this many letters before them.
_ENDING_CHARS = 2
_MIN_STEM_CHARS = 4


def is_grounded(words: str, texts: Iterable[str]) -> bool:
    """Return whether every word of `words` occurs in `texts`, possibly inflected.

    A number must occur unchanged. Words of one or two letters are ignored. If all words are that
    short, the result is false.
    """
    material = _plain("\n".join(texts))
    vocabulary = set(_WORD.findall(material))
    required = [word for word in _WORD.findall(_plain(words)) if not _SHORT_WORD.fullmatch(word)]
    return bool(required) and all(_occurs(word, vocabulary, material) for word in required)


def without_others(
    around: Sequence[Message], message: Message, messages: Sequence[Message]
) -> list[Message]:
    """Return `around` without the messages of other people than the author of `message`, the
    replies to them, and replies that others recorded or may have edited. Otherwise, they could add
    personal facts about this author.
    """
    others = {
        it.pk
        for it in messages
        if it.role == "user" and (it.author_id != message.author_id or it.recorded_by)
    }
    return [
        it
        for it in around
        if it.pk not in others
        and (it.role == "user" or (it.parent_id not in others and it.edited_at is None))
    ]


def _occurs(word: str, vocabulary: set[str], material: str) -> bool:
    if word in vocabulary:
        return True
    if any(map(str.isdigit, word)):
        return False
    # Scripts without spaces have no word boundaries, so part of a run of letters is enough.
    if not word.isascii() and word in material:
        return True
    stem = word[: max(_MIN_STEM_CHARS, len(word) - _ENDING_CHARS)]
    return len(word) >= _MIN_STEM_CHARS and any(known.startswith(stem) for known in vocabulary)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
