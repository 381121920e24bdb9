"""Types shared by all entity patterns, and the word lists of words.toml."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

# The maximum number of characters that are read. Summaries are ten times shorter.
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
    """`text` is the spelling in the text. `form` is the same for all spellings of one entity.

    `significant` is false if the loss of the entity does not matter, as for a bare 3. An
    insignificant entity is only used to find other entities in the text.
    """

    kind: EntityKind
    form: str
    text: str = field(compare=False)
    significant: bool = field(default=True, compare=False)


class Form(NamedTuple):
    form: str
    significant: bool = True


class EntityPattern(NamedTuple):
    """A pattern and the function `form`, which returns the normalised form of a match. If it
    returns None, later patterns may match the same text.

    Each pattern takes time linear in the length of the line, because it starts only at a word
    boundary or has bounded repeats.
    """

    kind: EntityKind
    pattern: re.Pattern[str]
    form: Callable[[re.Match[str]], Form | None]


def alternatives(words: str | Mapping[str, Any]) -> str:
    """Return a pattern for any of `words`, the longest first."""
    names = words.split() if isinstance(words, str) else words
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
