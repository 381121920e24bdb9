"""What a particular is, and how one kind of it is looked for in a line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

# Of a text, so much is read. Summaries are ten times shorter.
MOST_CHARACTERS = 20_000


class Kind(StrEnum):
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
class Particular:
    """`text` is as it was written; `form` is the same however it is written (see each kind's file).

    `telling` is false for what nobody would miss, such as a bare 3: that counts only where another
    text is looked through for it.
    """

    kind: Kind
    form: str
    text: str = field(compare=False)
    telling: bool = field(default=True, compare=False)


class Form(NamedTuple):
    form: str
    telling: bool = True


class Pass(NamedTuple):
    """`form` reads a match; None leaves what was matched to the passes after it.

    Every pattern takes time linear in the line: it starts only at the edge of a word, or what it
    repeats is bounded.
    """

    kind: Kind
    pattern: re.Pattern[str]
    form: Callable[[re.Match[str]], Form | None]
