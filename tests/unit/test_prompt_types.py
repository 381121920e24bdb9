"""The values that a prompt consists of."""

import pytest

from chat.prompt.types import PromptImage, ToolCall, dump_tool_calls, load_tool_calls
from projects.core.models import new_id


def image(width: int = 512, height: int = 512, description: str = "") -> PromptImage:
    return PromptImage(new_id(), "image/png", description, width, height, "x")


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1, 1, 255), (512, 512, 350), (1024, 1024, 1399), (2048, 1024, 1600), (2048, 300, 820)],
)
def test_an_image_costs_the_tokens_of_the_more_expensive_provider(width, height, tokens):
    assert image(width, height).tokens == tokens


def test_a_placeholder_is_one_line():
    assert image().placeholder == "[image]"
    assert image(description="the\n  old\tplan").placeholder == "[image: the old plan]"


def test_stored_calls_are_loaded_again():
    calls = tuple(ToolCall(key, "look", "{}") for key in ("one", "two"))
    assert load_tool_calls(dump_tool_calls(calls)) == calls


@pytest.mark.parametrize("stored", [None, {}, "x", [7], [{}], [{"id": ""}]])
def test_malformed_calls_are_skipped(stored):
    assert load_tool_calls(stored) == ()
