"""Which sources an answer probably used, on scripted answers with known sources."""

import tomllib
from pathlib import Path

import pytest

from memory.prompt.likely_sources import MAX_LIKELY, likely_sources, score_sources
from memory.recall import embedders

EMBEDDER = embedders.create("static", 0)
CASES = tomllib.loads(
    (Path(__file__).parents[1] / "memory" / "data" / "likely_used.toml").read_text()
)

FIRST = 2
MIN_SHARE = 0.9


def places(name: str, embedder) -> dict[bool, list[int]]:
    """Return the place of the right source for each answer of a set: of easy and of hard ones."""
    memories = [[text] for text in CASES[name]["memories"]]
    found: dict[bool, list[int]] = {False: [], True: []}
    for case in CASES[name]["answers"]:
        scores = score_sources(case["question"], case["answer"], memories, EMBEDDER)
        better = sum(score > scores[case["source"]] for score in scores)
        found[case.get("hard", False)].append(better)
    return found


def test_the_right_source_is_among_the_first_two():
    """Of 50 answers that were not used to choose the weights, half of them hard, the right source
    is among the first two of 60 for 49, and the first for 46.
    """
    found = places("held_out", EMBEDDER)
    assert (len(found[False]), len(found[True])) == (25, 25)
    for group in found.values():
        assert sum(place < FIRST for place in group) >= MIN_SHARE * len(group)


def test_without_an_embedder_words_names_and_numbers_are_enough_for_easy_answers():
    found = places("held_out", None)
    assert sum(place < FIRST for place in found[False]) >= MIN_SHARE * len(found[False])


def test_few_sources_are_likely_and_the_right_one_is_among_them():
    memories = [[text] for text in CASES["held_out"]["memories"]]
    marked = [
        (case["source"], likely_sources(case["question"], case["answer"], memories, EMBEDDER))
        for case in CASES["held_out"]["answers"]
    ]
    assert max(len(found) for _, found in marked) <= MAX_LIKELY
    assert sum(source in found for source, found in marked) >= MIN_SHARE * len(marked)


@pytest.mark.parametrize("answer", ["", "  ", "Hello! How can I help you today?", "2 + 2 is 4."])
def test_an_answer_without_content_used_nothing(answer):
    memories = [[text] for text in CASES["held_out"]["memories"]]
    assert likely_sources("Hi", answer, memories, EMBEDDER) == []


def test_without_sources_nothing_is_likely():
    assert likely_sources("Who?", "Ana.", [], None) == []
    assert likely_sources("Who?", "Ana.", [[]], None) == []


def test_the_best_line_of_a_source_counts():
    sources = [["Ben is on leave.", "The cutover is on 3 March."], ["The cutover is on 9 April."]]
    scores = score_sources("When is the cutover?", "On 3 March.", sources, None)
    assert scores[0] > scores[1]
