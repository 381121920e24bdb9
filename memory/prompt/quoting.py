"""Quoting: untrusted text is put between tags that the text itself cannot close. Pure."""

import re
import unicodedata

# The tags around quoted text in prompts.
TAGS = ("memory", "transcript")

# Characters that look like an opening bracket or a slash, besides those that NFKC folds to them.
_BRACKETS = "<‹⟨〈〈❬❮˂≺"
_SLASHES = "/∕⁄╱⧸\\⧵"
# Joiners are format characters that some scripts and emoji need.
_JOINERS = "\u200c\u200d"
# Removed at the start of a line: joiners and marks of headings. "#123" and "#general" stay.
_LINE_START = re.compile("^(?:[\\s\u200c\u200d]|[#＃]{2,}|[#＃](?=[\\s\u200c\u200d]|$))+")


def quote(text: str) -> str:
    """Return `text` as lines that are safe between the tags; quoting twice changes nothing more.

    A bracket that would open or close one of `TAGS` becomes "&lt;", however the tag is disguised
    (case, spaces, full-width or mathematical letters, marks and joiners between the letters).
    Control characters, invisible characters and empty lines are removed, and runs of spaces become
    one space. No line starts as a heading or with the bracket of a label: "## By day" becomes
    "By day", and "[Thu …]" becomes "\\[Thu …]".
    """
    lines = (quote_line(line) for line in text.splitlines())
    return escape_tags("\n".join(line for line in lines if line))


def quote_on_one_line(text: str) -> str:
    return " ".join(quote(text).split())


def quote_line(line: str) -> str:
    line = line.replace("\t", " ")
    if not (line.isascii() and line.isprintable()):
        # Control, format and lone surrogate characters (Unicode's Cc, Cf and Cs) are invisible.
        line = "".join(
            char
            for char in line
            if char in _JOINERS or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}
        )
    line = _LINE_START.sub("", " ".join(line.split()))
    return "\\" + line if line.startswith(("[", "［")) else line


def escape_tags(text: str) -> str:
    if text.isascii() and "<" not in text:
        return text
    return "".join(
        "&lt;" if is_bracket(char) and is_tag(text, index + 1) else char
        for index, char in enumerate(text)
    )


def is_bracket(char: str) -> bool:
    return char in _BRACKETS or (not char.isascii() and unicodedata.normalize("NFKC", char) == "<")


def is_tag(text: str, index: int) -> bool:
    """Return whether the name of a tag begins at `index`, with or without a slash.

    Spaces, marks and joiners between the letters leave a name readable, and are skipped.
    """
    name = ""
    longest = max(map(len, TAGS))
    while index < len(text) and len(name) < longest:
        for char in unicodedata.normalize("NFKD", text[index]).casefold():
            skipped = (
                char.isspace()
                or char in _JOINERS
                or unicodedata.category(char) in {"Mn", "Me"}
                or (char in _SLASHES and not name)
            )
            if not skipped:
                name += char
        if not any(tag.startswith(name) or name.startswith(tag) for tag in TAGS):
            return False
        index += 1
    return name.startswith(TAGS)
