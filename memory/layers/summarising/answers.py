"""What a model answered for a conversation: its summary, and what it claims to be facts. Pure.

Two forms are read, whichever was asked for: a JSON document with "summary" and "facts", and a text
after which a line says "Facts:" and each further line is one, its fields between bars. Of a fact
that is not exactly as asked nothing is kept; the summary is kept whatever becomes of the facts.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

# Of one part of a conversation.
MOST_CLAIMS = 12
# How sure a fact is of which the answer does not tell it.
USUAL_CONFIDENCE = 0.7

# What a model may say before its document.
MOST_LINES_BEFORE = 3

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_JSON_SUMMARY = re.compile(r"\{\s*\"summary\"\s*:\s*")
_JSON_FACTS = re.compile(r"\s*,\s*\"facts\"\s*:\s*\[\s*")
_COMMA = re.compile(r"\s*,\s*")
_HEADING = re.compile(r"^[\s#*_]*facts[\s*_]*:?[\s*_]*$", re.IGNORECASE)
_MARK = re.compile(r"^\s*(?:[-*+•–—]\s+|\(?\d{1,2}[.)]\s+)")
_YES_OR_NO = {"yes": True, "no": False}
_NO_DAY = ("", "-", "–", "—")


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact as a model tells it. `line` is the number, from 1, of the line that it cites; `since`
    the day from which on it is so, if it names one; `personal`: of the speaker of that line alone.
    """

    subject: str
    predicate: str
    object: str
    line: int
    since: date | None = None
    personal: bool = False
    confidence: float = USUAL_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Answer:
    """`claims` is None where the answer has no facts in any form. `is_complete`: the summary ends
    where the answer says, even if the answer broke off after it.
    """

    summary: str
    claims: tuple[Claim, ...] | None
    is_complete: bool


def taken_apart(text: str, cut_off: bool = False) -> Answer:
    """The answer's summary, as it was written, and its claims; `cut_off`: it ends in the middle."""
    text = _THINKING.sub("", text)
    return _of_json(text) or _of_text(text, cut_off)


def _of_json(text: str) -> Answer | None:
    """Of a document with a summary, be it whole or broken off after that; None for other texts."""
    begin = _JSON_SUMMARY.search(text)
    if begin is None or text[: begin.start()].count("\n") > MOST_LINES_BEFORE:
        return None
    decoder = json.JSONDecoder()
    try:
        told, end = decoder.raw_decode(text, begin.end())
    except (json.JSONDecodeError, RecursionError):
        return None
    lines = told if isinstance(told, list) else [told]
    if not lines or not all(isinstance(line, str) for line in lines):
        return None
    summary = "\n".join(lines) if isinstance(told, str) else "\n".join(map(_bullet, lines))
    found = _JSON_FACTS.match(text, end)
    if found is None:
        return Answer(summary, None, is_complete=True)
    rows = list(islice(_objects(text, found.end(), decoder), MOST_CLAIMS))
    return Answer(summary, tuple(filter(None, map(_of_object, rows))), is_complete=True)


def _bullet(line: str) -> str:
    return f"- {_MARK.sub('', ' '.join(line.split()))}"


def _objects(text: str, place: int, decoder: json.JSONDecoder) -> Iterator[object]:
    """The elements of a list, as far as it is there."""
    while True:
        try:
            one, place = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            return
        yield one
        comma = _COMMA.match(text, place)
        if comma is None:
            return
        place = comma.end()


def _of_object(one: object) -> Claim | None:
    if not isinstance(one, dict):
        return None
    words = [one.get(name) for name in ("subject", "predicate", "object")]
    line, personal, confidence = (one.get(name) for name in ("line", "personal", "confidence"))
    if not all(isinstance(word, str) and word.strip() for word in words):
        return None
    if type(line) is not int or not isinstance(personal, bool):
        return None
    known = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (known and 0 <= confidence <= 1):
        return None
    try:
        since = _day(one.get("since") or "")
    except ValueError:
        return None
    sure = USUAL_CONFIDENCE if confidence is None else float(confidence)
    subject, predicate, object_ = map(str, words)
    return Claim(subject, predicate, object_, line, since, personal, sure)


def _of_text(text: str, cut_off: bool) -> Answer:
    lines = text.splitlines()
    heading = next((place for place, line in enumerate(lines) if _HEADING.match(line)), None)
    if heading is None:
        return Answer(text, None, is_complete=not cut_off)
    below = lines[heading + 1 :]
    told = [line for line in below if "|" in line]
    # What is no fact may well be of the summary: "Facts:" is a title, too, that models give it.
    rest = [line for line in below if "|" not in line]
    if not told and any(map(str.strip, rest)) and not _says_none(rest):
        return Answer(text, None, is_complete=not cut_off)
    if cut_off:
        told = told[:-1]
    summary = "\n".join([*lines[:heading], *([] if _says_none(rest) else rest)])
    claims = tuple(filter(None, map(_of_line, told[:MOST_CLAIMS])))
    return Answer(summary, claims, is_complete=heading > 0 or not cut_off)


def _says_none(lines: list[str]) -> bool:
    said = " ".join(_MARK.sub("", line).strip(" .*_()-").casefold() for line in lines).split()
    return said in (["none"], ["no", "facts"])


def _of_line(line: str) -> Claim | None:
    """`subject | predicate | object | line | since, or - | personal: yes or no`."""
    fields = [field.strip(" \t*_`") for field in _MARK.sub("", line).strip().strip("|").split("|")]
    if len(fields) != 6 or not all(fields[:3]) or not re.fullmatch(r"#?\d{1,6}", fields[3]):
        return None
    if fields[5].casefold() not in _YES_OR_NO:
        return None
    try:
        since = _day(fields[4])
    except ValueError:
        return None
    personal = _YES_OR_NO[fields[5].casefold()]
    return Claim(fields[0], fields[1], fields[2], int(fields[3].lstrip("#")), since, personal)


def _day(told: Any) -> date | None:
    """Raises ValueError for what is no day."""
    if not isinstance(told, str):
        raise ValueError("A day is a text.")
    return None if told.strip() in _NO_DAY else date.fromisoformat(told.strip())
