"""Positions at which a stream may split a text."""

import re
from collections.abc import Callable, Sequence

# Each gives the pieces of a text.
CUTS: dict[str, Callable[[str], list[str]]] = {
    "after every character": list,
    "after every second character": lambda text: re.findall(r"(?s).{1,2}", text),
    "after every seventh character": lambda text: re.findall(r"(?s).{1,7}", text),
    "before every mark": lambda text: re.findall(r"(?s)[^\w\s]?[\w\s]*", text)[:-1],
    "after every mark": lambda text: re.findall(r"(?s)[\w\s]*[^\w\s]|[\w\s]+", text),
    "inside of words": lambda text: re.split(r"(?<=\w)(?=\w\w)", text),
    "not at all": lambda text: [text],
}


def cut(texts: Sequence[str], ways: Sequence[str]) -> tuple[str, ...]:
    """`texts`, as paragraphs of one answer, each cut in the next of the `ways` (keys of CUTS)."""
    pieces: list[str] = []
    for number, text in enumerate(texts):
        pieces += CUTS[ways[number % len(ways)]](text)
        pieces += ["\n", "\n"]
    return tuple(pieces[:-2])
