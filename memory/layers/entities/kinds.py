"""The types that all entity patterns share, and the word lists of words.toml."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

# The part of a text that is read. Summaries are ten times shorter.
MAX_CHARS = 20_000

WORDS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "words.toml").read_text(encoding="utf-8")
)


class EntityKind(StrEnum):
    NAME = "name"
    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    AMOUNT = "amount"
    PERCENTAGE = "percentage"
    LINK = "link"
    EMAIL = "e-mail"
    IDENTIFIER = "identifier"


@dataclass(frozen=True, slots=True)
class Entity:
    """`text` is the original spelling; `form` is the same for all spellings of one entity.

    `significant` is false for an entity whose loss does not matter, such as a bare 3. It is only
    used in the text in which other entities are looked up.
    """

    kind: EntityKind
    form: str
    text: str = field(compare=False)
    significant: bool = field(default=True, compare=False)


class Form(NamedTuple):
    form: str
    significant: bool = True


class EntityPattern(NamedTuple):
    """`form` reads a match; if it returns None, later patterns may match the same text.

    Every pattern takes time linear in the line: it starts only at the edge of a word, or its
    repeats are bounded.
    """

    kind: EntityKind
    pattern: re.Pattern[str]
    form: Callable[[re.Match[str]], Form | None]


def alternatives(words: str | Mapping[str, Any]) -> str:
    """Return a pattern for any of `words`, the longest first."""
    names = words.split() if isinstance(words, str) else words
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
