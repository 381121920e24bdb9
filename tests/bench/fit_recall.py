"""Fit the weights of recall's signals: `python -m tests.bench.fit_recall PATH… [--leave-out SET]`.

It reads the same files as `manage.py evaluate_recall`, and prints the figures as JSON. Without
`--leave-out`, it fits the weights on all files, measures and prints them.

The model is a softmax over the candidates of a question. A weight vector is good if the candidates
with evidence are probable. All sets have the same weight, even if one has more questions. Within a
set, all questions have the same weight. The penalty is that of ridge regression on standardised
signals. Fitted weights are never negative, and weights that are set by hand are not fitted. Both
rules make the weights work better on other kinds of conversations.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import django
import numpy as np
from numpy.typing import NDArray

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from memory.recall.evaluation import labelled, measures
from memory.recall.evaluation.measures import RankedQuestion
from memory.recall.ranking import WEIGHTS

BUDGETS = (500, 1000, 2000, 4000)
EACH_CONVERSATION = "conversations"
SET_BY_HAND = (
    *("assistant", "assistant_message", "assistant_self", "part", "opening", "length"),
    *("asked_latest", "recent_message"),
)
# The factor of the sum of squared weights, chosen on other conversations (docs/recall.md).
PENALTY = 0.03
# The weight of finding the session of the evidence, relative to finding its message.
SESSION_WEIGHT = 0.7
STEPS = 400
# Adam's parameters (https://arxiv.org/abs/1412.6980). The step is larger than usual, because the
# gradient is computed on all questions, not on a random sample.
STEP_SIZE, DECAY, SQUARE_DECAY = 0.05, 0.9, 0.999
# The minimum standard deviation. A signal that varies less is constant and gets no weight.
MIN_DEVIATION = 1e-4

Doubles = NDArray[np.float64]


class WeightFit:
    """Fits weights on several sets. `questions` are the questions of each set."""

    def __init__(self, questions: Sequence[Sequence[RankedQuestion]], names: Sequence[str]) -> None:
        self.names = names
        matrices, owners, groups, weights = [], [], [], []
        offset = 0
        for of_set in questions:
            usable = [question for question in of_set if _targets(question)]
            for question in usable:
                matrices.append(np.stack([question.signals[name] for name in names], axis=1))
                targets = _targets(question)
                total = sum(weight for _, weight in targets)
                for rows, weight in targets:
                    groups.append(rows + offset)
                    weights.append(weight / total / len(usable) / len(questions))
                    owners.append(len(matrices) - 1)
                offset += len(question.messages)
        signals = np.concatenate(matrices).astype(np.float64)
        deviation = signals.std(axis=0)
        is_constant = deviation < MIN_DEVIATION
        self.deviation = np.where(is_constant, 1, deviation)
        self.signals = (signals - signals.mean(axis=0)) / self.deviation * ~is_constant
        sizes = [len(matrix) for matrix in matrices]
        self.starts = np.cumsum([0, *sizes[:-1]])
        self.question_of = np.repeat(np.arange(len(sizes)), sizes)
        self.group_rows = np.concatenate(groups)
        self.group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        self.group_starts = np.cumsum([0, *[len(group) for group in groups[:-1]]])
        self.group_weights = np.array(weights)
        self.group_questions = np.array(owners)

    def gradient(self, weights: Doubles) -> Doubles:
        """Return the gradient of the negative log-likelihood plus penalty."""
        scores = self.signals @ weights
        probability = _softmax(scores, self.starts, self.question_of)
        within = _softmax(scores[self.group_rows], self.group_starts, self.group_of)
        question_weights = np.bincount(
            self.group_questions, self.group_weights, minlength=len(self.starts)
        )
        expected = self.signals.T @ (probability * question_weights[self.question_of])
        observed = self.signals[self.group_rows].T @ (within * self.group_weights[self.group_of])
        return expected - observed + 2 * PENALTY * weights

    def run(self) -> dict[str, float]:
        """Return the fitted weight of each signal, converted for non-standardised signals."""
        is_fitted = np.array([name not in SET_BY_HAND for name in self.names])
        by_hand = np.array([WEIGHTS.get(name, 0) for name in self.names]) * self.deviation
        weights = np.where(is_fitted, 0, by_hand)
        mean, square = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(1, STEPS + 1):
            gradient = self.gradient(weights)
            mean = DECAY * mean + (1 - DECAY) * gradient
            square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
            unbiased = mean / (1 - DECAY**step)
            scale = np.sqrt(square / (1 - SQUARE_DECAY**step)) + 1e-8
            weights -= STEP_SIZE / np.sqrt(1 + step / 50) * unbiased / scale
            weights = np.where(is_fitted, np.maximum(weights, 0), by_hand)
        return dict(zip(self.names, (weights / self.deviation).tolist(), strict=True))


def fit_weights(
    sets: Mapping[str, Sequence[RankedQuestion]], names: Sequence[str]
) -> dict[str, float]:
    """Return the weights of the signals `names`, fitted on all sets with equal weight."""
    return WeightFit(list(sets.values()), names).run()


def _targets(question: RankedQuestion) -> list[tuple[NDArray[np.intp], float]]:
    """Return, for each message or session to find, the candidates with it, and its weight."""
    rows = [(np.flatnonzero(row), 1.0) for row in question.evidence]
    rows += [(np.flatnonzero(row), SESSION_WEIGHT) for row in question.sessions]
    return [(group, weight) for group, weight in rows if len(group)]


def _softmax(scores: Doubles, starts: NDArray, group_of: NDArray) -> Doubles:
    """Return the softmax within each group of consecutive scores."""
    highest = np.maximum.reduceat(scores, starts)[group_of]
    exponential = np.exp(scores - highest)
    result: Doubles = exponential / np.add.reduceat(exponential, starts)[group_of]
    return result


Sets = Mapping[str, Sequence[RankedQuestion]]


def without_conversation(sets: Sets, conversation: str) -> dict[str, list[RankedQuestion]]:
    """Return the questions of all sets except those of one conversation."""
    others = {
        name: [question for question in questions if question.conversation != conversation]
        for name, questions in sets.items()
    }
    return {name: questions for name, questions in others.items() if questions}


def fitted_sets(sets: Sets, left_out: str) -> dict[str, measures.SetFigures]:
    """Return the figures of `left_out` with weights that are fitted on the other sets.

    EACH_CONVERSATION measures each conversation with weights fitted on the others. "" measures all
    sets with weights fitted on them. Raises KeyError for a set that was not read.
    """
    if left_out == EACH_CONVERSATION:
        return {name: _each_conversation(sets, questions) for name, questions in sets.items()}
    names = [left_out] if left_out else list(sets)
    weights = fit_weights({name: sets[name] for name in sets if name != left_out}, list(WEIGHTS))
    return {name: measures.measure(sets[name], weights, BUDGETS) for name in names}


def _each_conversation(sets: Sets, questions: Sequence[RankedQuestion]) -> measures.SetFigures:
    figures = measures.SetFigures()
    for name in dict.fromkeys(question.conversation for question in questions):
        weights = fit_weights(without_conversation(sets, name), list(WEIGHTS))
        own = [question for question in questions if question.conversation == name]
        measured = measures.measure(own, weights, BUDGETS)
        figures.questions += measured.questions
        for figure, values in measured.values.items():
            figures.values[figure] += values
        for kind, shares in measured.kinds.items():
            figures.kinds[kind] += shares
    return figures


def report(paths: Sequence[Path], left_out: str = "") -> dict[str, Any]:
    """Return the figures of each set and, if no set is left out, the weights."""
    sets = measures.collect(map(labelled.read, paths), BUDGETS).questions
    figures = {name: of_set.summary() for name, of_set in fitted_sets(sets, left_out).items()}
    return {"sets": figures} | ({} if left_out else {"weights": fit_weights(sets, list(WEIGHTS))})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--leave-out", default="", metavar="SET")
    options = parser.parse_args()
    json.dump(report(options.paths, options.leave_out), sys.stdout, indent=2)
