"""Quoting untrusted text: what memory recalls stands inside a fence that the text cannot close."""

import re
import unicodedata

# The tags between which quoted text stands in prompts.
TAGS = ("memory", "transcript")

# Beyond what NFKC folds to them, what reads as an opening bracket or a slash.
_OPENING = "<‹⟨〈〈❬❮˂≺"
_SLASHES = "/∕⁄╱⧸\\⧵"
# Joiners are format characters too, but scripts and emoji need them.
_JOINERS = "\u200c\u200d"
# What goes from the start of a line: joiners, and headings, as Markdown has them and as a hurried
# reader takes them; "#123" and "#general" stay.
_LEAD = re.compile("^(?:[\\s\u200c\u200d]|[#＃]{2,}|[#＃](?=[\\s\u200c\u200d]|$))+")


def quote(text: str) -> str:
    """`text` as lines that can stand inside a fence as data; quoting twice changes nothing more.

    A bracket that would open or close one of TAGS becomes "&lt;", however the tag is disguised
    (case, spaces, full-width or mathematical letters, marks and joiners between the letters).
    Control and invisible characters go, runs of spaces become one space, empty lines go. No line
    starts as a heading or with the bracket of a label: "## By day" becomes "By day", "[Thu …]"
    becomes "\\[Thu …]".
    """
    lines = (_line(line) for line in text.splitlines())
    return _without_tags("\n".join(line for line in lines if line))


def _line(line: str) -> str:
    line = _LEAD.sub("", " ".join(_visible(line).split()))
    return "\\" + line if line.startswith(("[", "［")) else line


def _visible(line: str) -> str:
    line = line.replace("\t", " ")
    if line.isascii() and line.isprintable():
        return line
    return "".join(char for char in line if char in _JOINERS or not _is_invisible(char))


def _is_invisible(char: str) -> bool:
    """Control, format and lone surrogate characters (Unicode's Cc, Cf and Cs)."""
    return unicodedata.category(char) in {"Cc", "Cf", "Cs"}


def _without_tags(text: str) -> str:
    if text.isascii() and "<" not in text:
        return text
    return "".join(
        "&lt;" if _opens(char) and _is_tag(text, place + 1) else char
        for place, char in enumerate(text)
    )


def _opens(char: str) -> bool:
    return char in _OPENING or (not char.isascii() and unicodedata.normalize("NFKC", char) == "<")


def _is_tag(text: str, place: int) -> bool:
    """Whether what stands at `place`, behind a bracket, is a tag's name, with or without slash."""
    name = ""
    longest = max(map(len, TAGS))
    while place < len(text) and len(name) < longest:
        for char in unicodedata.normalize("NFKD", text[place]).casefold():
            if not _is_filler(char) and not (char in _SLASHES and not name):
                name += char
        if not any(tag.startswith(name) or name.startswith(tag) for tag in TAGS):
            return False
        place += 1
    return name.startswith(TAGS)


def _is_filler(char: str) -> bool:
    """Space, marks and joiners: what can stand between letters and leave them readable."""
    return char.isspace() or char in _JOINERS or unicodedata.category(char) in {"Mn", "Me"}
