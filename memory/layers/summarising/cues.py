"""Cues: the patterns of cues.toml, by which sentences are scored and compared."""

import re
import tomllib
from pathlib import Path

_CUES = tomllib.loads(Path(__file__).with_name("cues.toml").read_text(encoding="utf-8"))


def cue(name: str, start: str = r"\b") -> re.Pattern[str]:
    """Return the pattern for the words of the section `name`, which begin after `start`."""
    words = "|".join(_CUES[name]["words"])
    unspaced = "".join(f"|{word}" for word in _CUES[name].get("unspaced", ()))
    return re.compile(rf"{start}(?:{words})\b{unspaced}", re.IGNORECASE)


# The name of a day, a month or a time, and any number.
DATE = cue("dates")
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")


def particulars(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words for days and times in `text`, and its numbers."""
    dates = frozenset(match.casefold() for match in DATE.findall(text))
    return dates, frozenset(NUMBER.findall(text))
