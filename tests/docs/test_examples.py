"""The example runner reports mistakes in a page."""

import pytest
import yaml

from tests.docs.examples import examples, is_like, is_text_like


def page(*blocks: tuple[str, str]) -> str:
    return "Words.\n\n" + "\n\n".join(f"```{name}\n{text}\n```" for name, text in blocks)


def test_examples_know_their_place():
    [first, second] = examples(page(("sh", "echo 1"), ("json", "{}")))
    assert (first.language, first.text, first.line) == ("sh", "echo 1\n", 4)
    assert (second.language, second.line) == ("json", 8)


def test_variables_go_from_block_to_block_and_into_python(in_vain):
    printed_page = page(
        ("sh", "export WHO=Ana\nN=$(echo 2)"),
        ("sh", 'echo "$WHO $N"'),
        ("text", "Ana 2"),
        ("python", "import os\nwho = os.environ['WHO']"),
        ("python", "print(who)"),
        ("text", "Ana"),
    )
    assert in_vain.follow(printed_page) == 4


@pytest.mark.parametrize(
    "blocks",
    [
        [("sh", "false")],
        [("sh", "false | true")],
        [("sh", "echo $NOBODY")],
        [("sh", "curl -sf http://127.0.0.1:8000/")],
        [("sh", "echo 1"), ("text", "2")],
        [("sh", "echo '{\"a\": 1}'"), ("json", '{"a": 2}')],
        [("python", "assert False")],
        [("sh", "WHO=Ana"), ("python", "import os\nos.environ['WHO']")],
        [("text", "below nothing")],
        [("json", "no JSON")],
        [("yaml", "a: [")],
        [("ruby", "puts 1")],
    ],
)
def test_a_failing_example_is_noticed(in_vain, blocks):
    with pytest.raises((AssertionError, ValueError, KeyError, yaml.YAMLError)):
        in_vain.follow(page(*blocks))


@pytest.mark.parametrize(
    ("expected", "actual", "like"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": "…"}, {"a": [1]}, True),
        ({"a": "…"}, {}, False),
        ([1, "…"], [1, 2, 3], True),
        ([1], [1, 2], False),
        ([1, 2, "…"], [1], False),
        ({"a": "In … we go"}, {"a": "In May we go"}, True),
        (None, False, False),
    ],
)
def test_json_is_like_what_is_shown(expected, actual, like):
    assert is_like(expected, actual) is like


def test_a_text_is_like_what_is_shown():
    assert is_text_like("event: delta\n…\nevent: done", "event: delta\ndata: 1\n\nevent: done")
    assert not is_text_like("a.c", "abc")
