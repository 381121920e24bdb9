"""Parse and clean the answers of models: the summary, and claims of facts. Pure.

Two formats are accepted, whichever was requested. One is a JSON document with "summary" and
"facts". The other is text with a line "Facts:", followed by one fact a line with its fields
separated by bars. A fact in any other form is dropped; the summary is kept in any case.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import dropwhile, islice
from typing import Any

from django.utils.translation import gettext_noop

from memory.layers.summarising.quotations import ORDINAL
from memory.layers.summarising.transcript import count_words, sentences, shorten

# The maximum number of facts from one answer.
MAX_CLAIMS = 12
# The confidence of a fact if the answer gives none.
DEFAULT_CONFIDENCE = 0.7

# The maximum length of an answer that is parsed. Usual answers have a tenth of it.
MAX_ANSWER_CHARS = 50_000
# The maximum number of lines before a JSON document.
MAX_LINES_BEFORE = 3

# A tag that is not closed encloses the rest of the text.
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_JSON_SUMMARY = re.compile(r"\{\s*\"summary\"\s*:\s*")
_JSON_FACTS = re.compile(r"\s{0,99},\s*\"facts\"\s*:\s*\[\s*")
# The numbers at the end of a bullet: "[3]", "[lines 3, 5 and 7-9]".
_CITATION = re.compile(
    r"\s?\[\s?(?:lines?|nos?\.?)?\s?(#?\d{1,6}(?:(?:\s?(?:[,;&–-]|and|to)\s?|\s)#?\d{1,6}){0,60})"
    r"\s?\]\.?$",
    re.IGNORECASE,
)
_CITED = re.compile(r"(\d{1,6})(?:\s?(?:-|–|to)\s?#?(\d{1,6}))?", re.IGNORECASE)
# The maximum length of a range of cited numbers. Of a longer one, the beginning counts.
MAX_CITED_RANGE = 50
# The number of characters at the end of a bullet that are searched for its citation.
MAX_CITATION_CHARS = 400
_COMMA = re.compile(r"\s{0,99},\s*")
# Models that write in the language of a German transcript translate these words too.
_FACTS_HEADING = re.compile(r"^[\s#*_]*(?:facts|fakten)[\s*_]*:?[\s*_]*$", re.IGNORECASE)
_NO_FACTS = (["none"], ["no", "facts"], ["keine"], ["keine", "fakten"])
_YES_OR_NO = {"yes": True, "no": False, "ja": True, "nein": False}
_NO_DAY = ("", "-", "–", "—")

# The beginning of a JSON document. Bullets, labels and dates in brackets do not match.
_JSON = re.compile(r"[{\[]\s*(?:[\"'{\[]|[}\]]\s*$)")
_CODE_FENCE = re.compile(r"^\s*(?:```|~~~)\w*\s*$")
_BULLET = re.compile(rf"^\s*(?:[-*+•–—]|(?!{ORDINAL})\(?\d{{1,2}}[.)])\s+")
_ORDINAL = re.compile(ORDINAL)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|[-=*_]{3,}\s*$)")
_PREAMBLE = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|okay|ok|absolutely)[,.!:]"
    r"|here(?:['’]s| is| are) (?:a|the|my)\b|below (?:is|are)\b|the following\b"
    r"|(?:summary|digest)\W*(?::|$)"
    r"|let me know\b|i hope\b|this (?:summary|digest)\b)",
    re.IGNORECASE,
)

# Names of scripts. For others, it is the first word of the Unicode names of their letters.
_SCRIPTS = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}


@dataclass(frozen=True, slots=True)
class FactClaim:
    """A fact as the model states it.

    `line` is the number of the cited line, from 1. `since` is the first day on which it is valid,
    or None. `personal` is true for facts about the speaker of that line only.
    """

    subject: str
    predicate: str
    object: str
    line: int
    since: date | None = None
    personal: bool = False
    confidence: float = DEFAULT_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Bullet:
    """A bullet of a summary with the numbers of the lines that it cites, which may not exist."""

    text: str
    cited: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"- {self.text} {list(self.cited)}" if self.cited else f"- {self.text}"


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    """A parsed answer. `claims` is None if the answer contains no list of facts. `is_complete` is
    true if the summary is complete, even if the answer broke off after it.
    """

    summary: str
    claims: tuple[FactClaim, ...] | None
    is_complete: bool


def parse_answer(text: str, cut_off: bool = False) -> SummaryAnswer:
    """Return the uncleaned summary and the claims. `cut_off`: the answer broke off."""
    text = _THINKING.sub("", text[:MAX_ANSWER_CHARS])
    return _parse_json(text) or _parse_text(text, cut_off)


def _parse_json(text: str) -> SummaryAnswer | None:
    """Parse a JSON document with at least a complete summary. Return None for any other text."""
    begin = _JSON_SUMMARY.search(text)
    if begin is None or text[: begin.start()].count("\n") > MAX_LINES_BEFORE:
        return None
    decoder = json.JSONDecoder()
    try:
        value, end = decoder.raw_decode(text, begin.end())
    except (ValueError, RecursionError):
        # ValueError is raised for broken JSON, and for a number of more than 4,300 digits.
        return None
    lines = [value] if isinstance(value, str) else _json_bullets(value)
    if not lines:
        return None
    facts = _JSON_FACTS.match(text, end)
    if facts is None:
        return SummaryAnswer("\n".join(lines), None, is_complete=True)
    rows = list(islice(_json_elements(text, facts.end(), decoder), MAX_CLAIMS))
    claims = tuple(filter(None, map(_claim_from_object, rows)))
    return SummaryAnswer("\n".join(lines), claims, is_complete=True)


def _json_bullets(value: object) -> list[str]:
    """Return the bullets of a list of strings, or of objects with "text" and "lines"; else []."""
    bullets = []
    for row in value if isinstance(value, list) else ():
        text, cited = (row.get("text"), row.get("lines")) if isinstance(row, dict) else (row, ())
        if not isinstance(text, str):
            return []
        numbers = cited if isinstance(cited, list) else [cited]
        bullet = Bullet(
            _BULLET.sub("", " ".join(text.split())),
            tuple(number for number in numbers if type(number) is int and number >= 0),
        )
        bullets.append(str(bullet))
    return bullets


def _json_elements(text: str, place: int, decoder: json.JSONDecoder) -> Iterator[object]:
    """Yield the complete elements of a list, which may have broken off, from the index `place`."""
    while True:
        try:
            element, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield element
        comma = _COMMA.match(text, place)
        if comma is None:
            return
        place = comma.end()


def _claim_from_object(row: object) -> FactClaim | None:
    if not isinstance(row, dict):
        return None
    words = [row.get(name) for name in ("subject", "predicate", "object")]
    line, personal, confidence = (row.get(name) for name in ("line", "personal", "confidence"))
    if not all(isinstance(word, str) and word.strip() for word in words):
        return None
    if type(line) is not int or not isinstance(personal, bool):
        return None
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        return None
    try:
        since = _parse_day(row.get("since") or "")
    except ValueError:
        return None
    subject, predicate, object_ = map(str, words)
    certainty = DEFAULT_CONFIDENCE if confidence is None else float(confidence)
    return FactClaim(subject, predicate, object_, line, since, personal, certainty)


def _parse_text(text: str, cut_off: bool) -> SummaryAnswer:
    lines = text.splitlines()
    heading = next((place for place, line in enumerate(lines) if _FACTS_HEADING.match(line)), None)
    if heading is None:
        return SummaryAnswer(text, None, is_complete=not cut_off)
    below = lines[heading + 1 :]
    rows = [line for line in below if "|" in line]
    # Models also use "Facts:" as a title of the summary, so lines without bars are kept.
    rest = [line for line in below if "|" not in line]
    words = " ".join(_BULLET.sub("", line).strip(" .*_()-").casefold() for line in rest).split()
    has_none = words in _NO_FACTS
    if not rows and any(map(str.strip, rest)) and not has_none:
        return SummaryAnswer(text, None, is_complete=not cut_off)
    if cut_off:
        rows = rows[:-1]
    summary = "\n".join([*lines[:heading], *([] if has_none else rest)])
    claims = tuple(filter(None, map(_claim_from_line, rows[:MAX_CLAIMS])))
    return SummaryAnswer(summary, claims, is_complete=heading > 0 or not cut_off)


def _claim_from_line(line: str) -> FactClaim | None:
    """Parse `subject | predicate | object | line | since, or - | personal: yes or no`."""
    fields = [
        field.strip(" \t*_`") for field in _BULLET.sub("", line).strip().strip("|").split("|")
    ]
    if len(fields) != 6 or not all(fields[:3]) or not re.fullmatch(r"#?\d{1,6}", fields[3]):
        return None
    if fields[5].casefold() not in _YES_OR_NO:
        return None
    try:
        since = _parse_day(fields[4])
    except ValueError:
        return None
    personal = _YES_OR_NO[fields[5].casefold()]
    return FactClaim(fields[0], fields[1], fields[2], int(fields[3].lstrip("#")), since, personal)


def _parse_day(text: Any) -> date | None:
    """Parse an ISO date; None for an empty field. Raises ValueError for any other text."""
    if not isinstance(text, str):
        raise ValueError("A day is not a string.")
    return None if text.strip() in _NO_DAY else date.fromisoformat(text.strip())


def clean_summary(text: str, max_bullets: int, max_words: int) -> list[Bullet]:
    """Return the bullets of a model's answer, within both limits.

    Removes reasoning, code fences, headings, preambles, closing words and excess bullets. The
    strings of a JSON document become bullets. Text is cut at the end of a bullet or sentence, and
    within a sentence only if the first sentence is too long. Raises ValueError with a readable
    reason if no text is left.
    """
    if not text.strip():
        raise ValueError(gettext_noop("the answer was empty"))
    bullets = _bullets(_json_as_bullets(_THINKING.sub("", text[:MAX_ANSWER_CHARS])))
    if not bullets:
        raise ValueError(gettext_noop("the answer was only a preamble"))
    result: list[Bullet] = []
    room = max_words
    for bullet, cited in map(_split_citation, bullets[:max_bullets]):
        # Minus one for the dash, because words are counted by spaces.
        fitting = _whole_sentences(bullet, room - 1)
        if not fitting and not result:
            fitting = shorten(bullet, room - 1)
        if not fitting:
            break
        result.append(Bullet(fitting, cited))
        room -= count_words(f"- {fitting}")
        if fitting != bullet:
            break
    return result


def _split_citation(bullet: str) -> tuple[str, tuple[int, ...]]:
    """Return a bullet without the numbers at its end, and the numbers without duplicates."""
    citation = _CITATION.search(bullet, max(0, len(bullet) - MAX_CITATION_CHARS))
    # If a bullet consists only of numbers, they are its text and no citation.
    if citation is None or not bullet[: citation.start()].strip():
        return bullet, ()
    cited: dict[int, None] = {}
    for first, last in _CITED.findall(citation[1]):
        begin, end = int(first), int(last or first)
        cited |= dict.fromkeys(range(begin, min(end, begin + MAX_CITED_RANGE) + 1))
    return bullet[: citation.start()], tuple(cited)


def _content_lines(text: str) -> list[str]:
    """Return the lines of an answer except empty lines, code fences and headings."""
    return [
        line
        for line in text.splitlines()
        if line.strip() and not _CODE_FENCE.match(line) and not _HEADING.match(line)
    ]


def _bullets(text: str) -> list[str]:
    """Return the bullets of an answer without their markers. Without bullets, return its lines."""
    lines = _content_lines(text)
    has_bullets = any(_BULLET.match(line) for line in lines)
    bullets: list[str] = []
    for line in lines:
        content = " ".join(_BULLET.sub("", line, count=1).split())
        if _BULLET.match(line) or _ORDINAL.match(line):
            bullets.append(content)
        elif not has_bullets:
            # The text after a preamble on the same line is content: "Here is a summary: …".
            is_preamble = _PREAMBLE.match(content)
            bullets.append(content.partition(":")[2].strip(" *_") if is_preamble else content)
        elif bullets and line[:1].isspace():
            # An indented line continues its bullet. Other lines after a bullet are left out.
            bullets[-1] += f" {content}"
    return [bullet for bullet in bullets if re.search(r"\w", bullet)]


def _json_as_bullets(text: str) -> str:
    """Return the strings of a JSON document as bullets. Text that is no JSON is returned unchanged.

    Raises ValueError if the document is broken, contains no text or is a tool call.
    """

    def is_preamble(line: str) -> bool:
        return bool(_PREAMBLE.match(line) and not _JSON.match(line))

    bare = "\n".join(dropwhile(is_preamble, _content_lines(text))).strip()
    if not _JSON.match(bare):
        return text
    try:
        document, _ = json.JSONDecoder().raw_decode(bare)
        strings = list(_strings(document))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(gettext_noop("the answer was broken JSON")) from error
    if not strings:
        raise ValueError(gettext_noop("the answer was JSON without a text"))
    return "\n".join(
        f"- {_BULLET.sub('', line)}" for string in strings for line in string.splitlines()
    )


def _strings(document: object) -> Iterator[str]:
    """Yield the strings in the values of a document. Raises ValueError for a tool call."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, list):
        for element in document:
            yield from _strings(element)
    elif isinstance(document, dict):
        if any({"name", key} <= document.keys() for key in ("arguments", "parameters")):
            raise ValueError(gettext_noop("the answer was a tool call"))
        for element in document.values():
            yield from _strings(element)


def _whole_sentences(text: str, max_words: int) -> str:
    """Return as many complete sentences from the start of `text` as fit into `max_words`."""
    result = ""
    for sentence in sentences(text):
        if count_words(result + sentence) > max_words:
            break
        result += sentence
    return result.strip()


def _scripts(text: str) -> Counter[str]:
    """Count the letters of `text` by script (writing system)."""
    scripts: Counter[str] = Counter()
    for char, count in Counter(unicodedata.normalize("NFKC", text)).items():
        if unicodedata.category(char) in {"Lu", "Ll", "Lo"}:
            name = re.split("[ -]", unicodedata.name(char, ""))[0]
            scripts[_SCRIPTS.get(name, name.title())] += count
    return scripts


def scripts_in(text: str) -> frozenset[str]:
    """Return the names of the scripts in `text`."""
    return frozenset(_scripts(text))


def foreign_script(text: str, known: frozenset[str]) -> str:
    """Return the script of at least two thirds of the letters of `text` if it is not in `known`.

    Otherwise, or if `known` is empty, return "".
    """
    scripts = _scripts(text)
    # Japanese texts also contain Chinese characters, in varying proportions.
    if "Japanese" in known:
        known |= {"Chinese"}
    for name, count in scripts.items():
        if known and name not in known and 3 * count >= 2 * scripts.total():
            return name
    return ""
