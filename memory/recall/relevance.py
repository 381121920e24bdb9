"""What is worth telling a model unasked: a threshold keeps the irrelevant out. Pure."""

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

# A score (see memory.recall.fusion) that few excerpts reach which do not bear on the question.
THRESHOLD = 9.0
# A summary stands alone, with nothing around it that speaks for it.
SUMMARY_THRESHOLD = 9.0
# And no worse than the best by so much: e^-4 of its chance to be what is asked for.
WITHIN = 4.0

_WORDS = re.compile(r"[^\W\d_]+")
# Said to keep a conversation going; it asks for nothing.
_SMALL_TALK = frozenset(
    (
        "a ah alright and awesome bye cheers cool exactly fine for go good got great haha "
        "hello hey hi i it just k let like lol lot lovely makes many me morning much my never "
        "nice night no nope now of oh ok okay on perfect please pretty really right sense so "
        "sounds sure thank thanks that the then there this to too understood us very welcome "
        "well wonderful works wow yay yeah yep yes you your"
    ).split()
)


class Scored(Protocol):
    @property
    def score(self) -> float: ...


S = TypeVar("S", bound=Scored)


def is_small_talk(text: str) -> bool:
    """Whether nothing is asked or told: thanks, greetings, assent."""
    return all(word in _SMALL_TALK for word in _WORDS.findall(text.lower()))


def relevant(best_first: Sequence[S], threshold: float = THRESHOLD) -> list[S]:
    """Those that are good enough by themselves and beside the best."""
    if not best_first:
        return []
    least = max(threshold, best_first[0].score - WITHIN)
    return [one for one in best_first if one.score >= least]
