"""Which images a model is shown, and what they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.sight import MOST_IMAGES, Image, choose
from projects.identifiers import new_id


def image(width: int = 512, height: int = 512, description: str = "") -> Image:
    return Image(new_id(), "image/png", description, width, height, "x")


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1, 1, 255), (512, 512, 350), (1024, 1024, 1399), (2048, 1024, 1600), (2048, 300, 820)],
)
def test_an_image_costs_what_the_dearer_provider_asks(width, height, tokens):
    assert image(width, height).tokens == tokens


def test_a_note_is_one_line():
    assert image().note == "[image]"
    assert image(description="the\n  old\tplan").note == "[image: the old plan]"


@given(
    st.lists(st.tuples(st.integers(1, 2048), st.integers(1, 2048)), max_size=40),
    st.integers(-5, 60_000),
)
def test_the_newest_are_shown_within_the_budget(sizes, budget):
    images = [image(width, height) for width, height in sizes]
    chosen = choose(images, budget)
    shown = [one for one in images if one.id in chosen]
    assert shown == images[: len(shown)]
    assert len(shown) <= MOST_IMAGES
    assert sum(one.tokens for one in shown) <= max(budget, 0)
