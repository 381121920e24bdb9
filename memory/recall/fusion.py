"""Signals become one order. Pure.

The weights were fitted on labelled conversations (see docs/recall.md): a linear score, under which
the softmax over a question's rows gives the rows that answer it the most. They are all there is
of it at run time.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

WEIGHTS: Mapping[str, float] = {
    # Words of the question, by themselves: around the excerpt, and in its conversation.
    "words_window": 1.395,
    "words_session": 0.959,
    # Words of the question, by the nearest in meaning: in the excerpt, and what is met only
    # before, after, further off and elsewhere in its conversation.
    "meaning": 6.537,
    "meaning_rare": 4.753,
    "meaning_before": 9.393,
    "meaning_after": 3.688,
    "meaning_further": 6.389,
    "meaning_session": 1.38,
    # The vectors of excerpts as a whole.
    "likeness_near": 4.526,
    "likeness_session": -0.929,
    # Who speaks, and how.
    "speaker": 1.901,
    "asks": -0.477,
    "answers": 0.817,
    "of_self": -0.768,
    "speaker_of_self": 1.246,
    "to_other": -0.409,
    "brief": -0.15,
    "names": 0.779,
    "asked_names": 2.254,
    "opening": 1.002,
    # When.
    "asked_when": 2.104,
    "day": 5.584,
    "day_after": 4.504,
    "day_before": 3.31,
}


def contributions(signals: Mapping[str, Floats]) -> dict[str, Floats]:
    """What each signal adds to the score of each row."""
    return {name: weight * signals[name] for name, weight in WEIGHTS.items()}


def total(contributions: Mapping[str, Floats]) -> Floats:
    """The score of each row: the more, the better."""
    return np.sum(list(contributions.values()), axis=0)
