"""Inputs that once stopped a process for minutes, each in bounded processor time."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BytesIO

import pytest
from rest_framework.exceptions import ParseError

from chat.conversations.search import excerpt_around
from chat.conversations.titles import clean_title, title_from
from chat.openai_api.transcript_matching import ASSISTANT, USER, ComparedMessage, match_transcript
from chat.prompt.quoting import quote_labels
from memory.layers.lines import as_text, from_text, roll_up
from memory.layers.losses import audit
from memory.layers.summarising.answers import clean_summary, parse_answer
from memory.layers.summarising.extractive import conversation
from memory.layers.summarising.transcript import TranscriptLine
from memory.moderation.diffs import diff_lines, diff_words
from memory.recall.chunking import MAX_CHUNK_TOKENS, split_text
from memory.recall.service import is_small_talk
from projects.core.api.json import (
    MAX_PARTS,
    SafeJSONParser,
    TooManyValuesError,
    require_few_values,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
UNITS = [
    *("\n", " ", "-", ".", "a", "a.", "a-", "a_", "A", "aA", "1.", "so ", "well, ", "haha ", "aw"),
    *(
        "so really ",
        "it so very ",
        "- \n",
        "\n-",
        "#",
        "`",
        "<details type=",
        "<think>",
        "「",
        "漢",
    ),
    *("http://", "a@", "/a", '{"summary": ', '{"facts": [', "| a ", "i'm so "),
]


@contextmanager
def processor_seconds_below(seconds: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_request_of_30_kb_is_compared_at_once(unit):
    path = [ComparedMessage(USER, "Hello"), ComparedMessage(ASSISTANT, "Hi")]
    text = unit * (30_000 // len(unit))
    for new in (text, f"Hello{text}", f"{text}Hello Hi{text}"):
        with processor_seconds_below(1):
            match_transcript(path, [*path, ComparedMessage(USER, new)], False)


def test_requests_of_2_000_equal_or_unknown_messages_are_compared_at_once():
    path = [ComparedMessage(USER, "a")] * 4_000
    for text in ("a", "b"):
        with processor_seconds_below(2):
            match_transcript(path, [ComparedMessage(USER, text)] * 2_000, False)


@pytest.mark.parametrize("unit", UNITS)
def test_two_hostile_messages_are_summarised_at_once(unit):
    lines = [TranscriptLine("Ana", unit * (200_000 // len(unit)), NOON) for _ in range(2)]
    with processor_seconds_below(10):
        summary = conversation(lines)
    assert summary and len(as_text(summary)) < 2_000


@pytest.mark.parametrize("unit", UNITS)
def test_one_hostile_line_of_summaries_is_digested_and_audited_at_once(unit):
    texts = [unit * (100_000 // len(unit)), "- The cutover is on 3 March."]
    with processor_seconds_below(10):
        lines = roll_up([from_text(text, NOON.date()) for text in texts])
        audit([("Mon 1 Nov", text) for text in texts], as_text(lines))


@pytest.mark.parametrize("unit", [*UNITS, "ab ", "🦄"])
def test_a_message_without_the_end_of_a_sentence_is_cut_into_chunks_in_bounded_time(unit):
    text = unit * (500_000 // len(unit))
    with processor_seconds_below(10):
        parts = list(split_text(text, MAX_CHUNK_TOKENS))
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", UNITS)
def test_the_other_readers_of_a_message_take_bounded_time(unit):
    text = unit * (500_000 // len(unit))
    with processor_seconds_below(5):
        title_from(text)
        clean_title(text)
        excerpt_around(text, "so a - 漢")
        is_small_talk(text)
        parse_answer(text)
        quote_labels(text, {"a", "alice"})
    with processor_seconds_below(5), suppress(ValueError):
        clean_summary(text, 3, 80)


def test_summaries_of_equal_words_are_compared_at_once():
    with processor_seconds_below(3):
        diff_words("a " * 2_500, "a b " * 1_250)
        diff_lines("a\n" * 2_500, "a\nb\n" * 1_250)


@pytest.mark.parametrize("part", ["[],", "{},", '"",', '{"a": "\\\\", "b": "\\""},', "["])
def test_a_body_of_too_many_values_is_refused_at_once(part):
    body = '["\\"", ' + part * (30_000_000 // len(part))
    with processor_seconds_below(3), pytest.raises(TooManyValuesError):
        require_few_values(body)


@pytest.mark.parametrize("charset", ["idna", "punycode"])
def test_a_charset_that_cannot_replace_bytes_is_an_error(charset):
    with pytest.raises(ParseError):
        SafeJSONParser().parse(BytesIO(b'["\xff.\xff"]'), None, {"encoding": charset})


@pytest.mark.parametrize("text", ["a, [b] {c} ", '"', "\\", '\\"', "\\,"])
def test_commas_and_brackets_in_a_text_are_not_values(text):
    require_few_values(json.dumps({"content": text * MAX_PARTS, "reply": False}))
    require_few_values(json.dumps([text] * (MAX_PARTS // 2 - 1)))
    with pytest.raises(TooManyValuesError):
        require_few_values(json.dumps([text] * (MAX_PARTS + 1)))
