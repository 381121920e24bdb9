"""Injection detection: find text that tries to instruct a model. Pure.

Prompts quote memory as data. Text that reads like instructions is not shown until somebody has
reviewed it. A phrase counts only if it is a command: at the beginning of a sentence, or after
"please" and similar words. "We decided to ignore the old rules" is a report, not a command.

The phrases are in phrases.toml.
"""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import NamedTuple

from chat.prompt.quoting import INVISIBLE, LETTER_SUBSTITUTES, LETTERS

# The maximum number of characters that are read. Summaries are ten times shorter.
MAX_CHARS = 20_000

PHRASES = Path(__file__).parent / "phrases.toml"

_WORD = re.compile(r"\w{2,60}")
_LEET_WORD = re.compile(r"(?<![\w@$!|])[\w@$!|]{1,40}(?![@$!|])")
_SPELLED_OUT = re.compile(r"(?<!\w)\w(?:[ .·|-]{1,3}\w(?!\w)){5,400}")
_SEPARATORS = re.compile(r"[\s_*~`·|—–-]+")
_UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff]"
_BETWEEN_UNSPACED = re.compile(rf"(?<={_UNSPACED}) +(?={_UNSPACED})")
_PART = re.compile(r"\{([a-z][a-z_]*\d?)\}")


class InjectionPatterns(NamedTuple):
    """`phrases` are matched with the normalised text, `marks` with the unchanged text."""

    phrases: list[re.Pattern[str]]
    marks: re.Pattern[str]
    spelled_out: re.Pattern[str]


@cache
def load_patterns() -> InjectionPatterns:
    """Compile phrases.toml on first use, because it takes a quarter of a second and most processes
    never need the patterns.
    """
    data = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    parts = data["parts"]
    return InjectionPatterns(
        [
            re.compile(_PART.sub(lambda name: parts[name[1]], phrase), re.MULTILINE)
            for phrases in data["phrases"].values()
            for phrase in phrases
        ],
        re.compile("|".join(sum(data["marks"].values(), [])), re.IGNORECASE | re.MULTILINE),
        re.compile("|".join(data["spelled_out"]["commands"])),
    )


def find_instructions(text: str) -> frozenset[str]:
    """Return the normalised phrases in `text` that read like instructions to a model."""
    patterns = load_patterns()
    visible = _visible(text[:MAX_CHARS])
    found = {match[0].strip().casefold() for match in patterns.marks.finditer(visible)}
    plain = _plain(visible)
    for version in {plain, _LEET_WORD.sub(_unleet, plain)}:
        for pattern in patterns.phrases:
            found.update(match[0].strip() for match in pattern.finditer(version))
    for run in _SPELLED_OUT.finditer(visible.casefold()):
        letters = "".join(filter(str.isalnum, run[0])).translate(LETTER_SUBSTITUTES)
        found.update(match[0] for match in patterns.spelled_out.finditer(letters))
    return frozenset(found)


def reads_like_instructions(text: str) -> bool:
    return bool(find_instructions(text))


def _visible(text: str) -> str:
    """Replace full-width and mathematical letters by ordinary ones; drop invisible characters."""
    return "".join(
        char
        for char in unicodedata.normalize("NFKC", text.translate(INVISIBLE)).translate(INVISIBLE)
        if char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}
    )


def _plain(visible: str) -> str:
    """Return the normalised text in which phrases are matched. phrases.toml describes it."""
    bare = "".join(
        char
        for char in unicodedata.normalize("NFD", visible.casefold())
        if not "\u0300" <= char <= "\u036f"
    )
    bare = unicodedata.normalize("NFC", bare).replace("’", "'")
    lines = (" ".join(_SEPARATORS.sub(" ", line).split()) for line in bare.splitlines())
    return _BETWEEN_UNSPACED.sub("", _WORD.sub(_latinise, "\n".join(filter(None, lines))))


def _latinise(word: re.Match[str]) -> str:
    """Replace letters that look like Latin letters, in a word that also has Latin letters."""
    if word[0].isascii() or not re.search("[a-z]", word[0]):
        return word[0]
    return word[0].translate(LETTERS)


def _unleet(word: re.Match[str]) -> str:
    letters = sum(map(str.isalpha, word[0]))
    return word[0].translate(LETTER_SUBSTITUTES) if 2 * letters >= len(word[0]) else word[0]
