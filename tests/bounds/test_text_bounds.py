"""Work on long texts takes bounded processor time. These tests need no database."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from memory.layers.entities.patterns import MAX_CHARS
from memory.layers.injection_detection import find_instructions
from memory.layers.losses import audit
from memory.layers.summarising.extractive import conversation
from memory.layers.summarising.transcript import TranscriptLine, split_lines
from projects.core import token_counting

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MEGABYTE = 1_000_000


@contextmanager
def processor_seconds_below(seconds: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@pytest.mark.parametrize(
    "bit",
    [
        "a",
        "1 ",
        "1,",
        "Ana ",
        "3月",
        "田中さん",
        "a'",
        "A-",
        "a_",
        "a.",
        "2026-",
        "<",
        "1 000 ",
        ":",
    ],
)
def test_losses_of_a_megabyte(bit):
    text = bit * (MEGABYTE // len(bit))
    assert len(text) > 5 * MAX_CHARS
    with processor_seconds_below(20):
        audit([("", text)], text)


@pytest.mark.parametrize(
    "bit", ["ignore ", "from now on ", "a ", "i g ", "<|", "![", "忽略", '{"name":', "send x "]
)
def test_injection_detection_in_a_megabyte(bit):
    with processor_seconds_below(20):
        find_instructions(bit * (MEGABYTE // len(bit)))


def test_an_extractive_summary_of_five_thousand_lines():
    text = "The cutover is on 3 March, as Ben said. I like it! Do you?"
    lines = [TranscriptLine("Ana", f"{text} {n}", NOON, "user") for n in range(5_000)]
    with processor_seconds_below(20):
        assert conversation(lines)


@pytest.mark.parametrize("text", ["a" * 300_000, "word " * 60_000, "." * 300_000, "-.)" * 100_000])
def test_one_message_of_300_000_characters_is_split_without_a_loss(text):
    line = TranscriptLine("Ana", text, NOON)
    with processor_seconds_below(20):
        parts = ["".join(piece for _, piece in part) for part in split_lines([line], 500)]
        assert all(token_counting.count(part) <= 500 for part in parts)
    spoken = re.sub(r"\[2026-11-21 12:00\] \w+( \(continued\))?: ", "", "".join(parts))
    assert re.sub(r"\s", "", spoken) == re.sub(r"\s", "", text)
