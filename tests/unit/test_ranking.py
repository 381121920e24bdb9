"""The signals of recall and their weights, without a database."""

import random

import numpy as np
import pytest

from memory.recall import query_parsing, ranking, wordpieces

WORDS = (
    "table river green engine letter market window simple carry yellow station bread paper tooth "
    "doctor music stone basket winter finger shoulder bottle number cotton island pocket garden"
).split()
QUERY = "Which invoice does the warehouse settle?"


def rows(texts, by_assistant=None):
    """Return candidates that are each alone in their source."""
    count = len(texts)
    return ranking.CandidateRows(
        source=np.arange(count),
        first_seq=np.full(count, 2),
        last_seq=np.full(count, 2),
        matched=np.zeros((count, 1), bool),
        similarity=np.zeros(count, np.float32),
        pieces=wordpieces.pack(texts),
        days=[0] * count,
        mentions=[[]] * count,
        by_assistant=np.zeros(count, bool) if by_assistant is None else np.array(by_assistant),
        parts=np.zeros(count, np.int64),
    )


def signals_of(candidates, query=QUERY):
    return ranking.measure_signals(
        query_parsing.parse_query(query),
        wordpieces.query_pieces(query),
        candidates,
        np.ones(1, np.float32),
        np.zeros(len(candidates), bool),
    )


@pytest.mark.parametrize("seed", range(5))
def test_no_signal_grows_with_the_length_of_an_excerpt_alone(seed):
    choose = random.Random(seed)
    sizes = [choose.randint(5, 120) for _ in range(300)]
    texts = [" ".join(choose.choices(WORDS, k=size)) for size in sizes]
    signals = signals_of(rows(texts))
    lengths = np.log1p(np.array(sizes))
    for name in ("meaning", "meaning_rare"):
        assert abs(np.corrcoef(signals[name], lengths)[0, 1]) < 0.1, name
    scores = ranking.total_scores(ranking.score_contributions(signals, ranking.WEIGHTS))
    assert np.corrcoef(scores, lengths)[0, 1] < 0.1


def test_a_persons_words_rank_above_an_assistants_same_words():
    texts = ["The warehouse settles the invoice of March."] * 2
    signals = signals_of(rows(texts, by_assistant=[True, False]))
    scores = ranking.total_scores(ranking.score_contributions(signals, ranking.WEIGHTS))
    assert scores[1] > scores[0]


def test_a_question_for_the_latest_prefers_later_excerpts():
    candidates = rows(["The warehouse settles the invoice."] * 3)
    candidates.days[:] = [1, 30, 60]
    latest = signals_of(candidates, "Which invoice does the warehouse settle now?")["asked_latest"]
    assert latest[0] < latest[1] < latest[2]
    assert not signals_of(candidates)["asked_latest"].any()


def test_a_day_that_an_excerpt_mentions_counts_like_its_own():
    candidates = rows(["The warehouse settles the invoice."] * 3)
    candidates.days[:] = [19_785, 19_786, 19_787]
    candidates.mentions[:] = [[], [], [19_785]]
    day = signals_of(candidates, "What was settled on 3 March 2024?")["day"]
    assert day.tolist() == [1, 0, 1]


LONG_MESSAGE = QUERY + " Let us continue, and plan the next steps of it with all details." * 4


def test_a_message_that_continues_a_chat_prefers_recent_conversations():
    candidates = rows(["The warehouse settles the invoice."] * 3)
    candidates.days[:] = [1, 60, 60]
    recent = signals_of(candidates, LONG_MESSAGE)["recent_message"]
    assert recent[0] < recent[1] == recent[2] == 0
    assert not signals_of(candidates)["recent_message"].any()


def role_score(query):
    """Return what the role adds to the score of an assistant's excerpt."""
    signals = signals_of(rows(["The warehouse settles the invoice."], by_assistant=[True]), query)
    roles = {name: values for name, values in signals.items() if name.startswith("assistant")}
    return ranking.total_scores(ranking.score_contributions(roles, ranking.WEIGHTS))[0]


def test_the_query_decides_how_much_an_assistant_counts_less():
    of_self = role_score("Which of my invoices did I settle?")
    assert of_self < role_score(QUERY) < role_score(LONG_MESSAGE) < 0


def test_every_weight_has_its_signal():
    signals = signals_of(rows(["The warehouse settles the invoice."]))
    assert set(signals) == set(ranking.WEIGHTS)
