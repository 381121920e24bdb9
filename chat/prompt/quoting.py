"""Quoting: change untrusted text so that it cannot close the tags around it. Pure."""

import re
import unicodedata
from collections.abc import Set

# "<" and its look-alikes, except those that NFKC replaces by it.
BRACKETS = "<‹⟨〈〈❬❮❰˂≺ᐸᚲ⧼⦑⋖◁◂⊲"
SLASHES = "/∕⁄╱⧸\\⧵⟋"
# Format characters that are kept, because some scripts and emoji need them.
JOINERS = "\u200c\u200d"
# Letters or marks in Unicode that show nothing: Hangul fillers, Khmer inherent vowels, the grapheme
# joiner. The Braille blank shows a space.
INVISIBLE = dict.fromkeys(map(ord, "\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f")) | {0x2800: " "}
# Replaces letters of other scripts, small capitals and phonetic letters by Latin letters.
LETTERS = str.maketrans(
    "аеорсухіјѕԁӏкмтвнһѵԛԝոսօαορικντυγɑɡıɩʏᴍᴇᴏʀᴛᴀɴᴄᴘɪ",
    "aeopcyxijsdlkmtbhhvqwnuoaopikvtuyagiiymeortancpi",
)
# Digits and signs that are used instead of letters.
LETTER_SUBSTITUTES = str.maketrans("013457@$!|", "oieastasii")

# The tags around quoted text in prompts.
TAGS = ("memory", "transcript")

# Makes double quotation marks inside a quotation single.
SINGLE_MARKS = str.maketrans("“”„‟", "‘’‚‛")

# Removed at the start of a line: joiners and heading markers. "#123" and "#general" are kept.
_LINE_START = re.compile("^(?:[\\s\u200c\u200d]|[#＃]{2,}|[#＃](?=[\\s\u200c\u200d]|$))+")

# What may come before a label: spaces, marks, and characters that show nothing.
_BEFORE_LABEL = re.compile(f"[\\W_{''.join(map(chr, INVISIBLE))}]*")
# The marks that a prompt adds to messages, as in "[deleted …]".
_MESSAGE_TAGS = ("deleted", "reactions")
# The colon of a label is searched in this many characters.
MAX_LABEL_CHARS = 400


def quote(text: str) -> str:
    """Return `text` in a form that is safe between the tags. Quoting it again changes nothing.

    A bracket that would open or close one of `TAGS` becomes "&lt;", even if the tag is disguised
    (case, spaces, digits for letters, letters of other scripts, marks between the letters). Control
    characters, invisible characters and empty lines are removed, and runs of spaces become one
    space. No line starts as a heading or with the bracket of a label: "## By day" becomes "By day",
    and "[Thu …]" becomes "\\[Thu …]".
    """
    lines = (_clean_line(line) for line in text.splitlines())
    return _escape_tags("\n".join(line for line in lines if line))


def quote_on_one_line(text: str) -> str:
    return " ".join(quote(text).split())


def quote_words(text: str) -> str:
    """Return `text` on one line, for use between “ and ”. It cannot end this quotation."""
    return quote_on_one_line(text).translate(SINGLE_MARKS)


def quote_labels(text: str, labels: Set[str]) -> str:
    """Return `text` with a backslash before each line that could look like another message.

    Such a line begins with a name and a colon, or with a mark of a prompt, such as "[deleted …".
    The first line is not changed. `labels` are the results of `label_of` for the names.
    """
    first, *lines = text.splitlines(keepends=True) or [""]
    initials = {label[0] for label in labels if label}
    return first + "".join(
        f"\\{line}" if _is_label(line, labels, initials) else line for line in lines
    )


def label_of(text: str) -> str:
    """Return the letters and digits before the first colon, without case, accents and disguise."""
    name = unicodedata.normalize("NFKD", text)[:MAX_LABEL_CHARS].partition(":")[0].casefold()
    return "".join(filter(str.isalnum, name.translate(INVISIBLE).translate(LETTERS)))


def _is_label(line: str, labels: Set[str], initials: Set[str]) -> bool:
    before = _BEFORE_LABEL.match(line)
    begin = before.end() if before else 0
    start = line[begin : begin + MAX_LABEL_CHARS]
    if start[:9].lower().startswith(_MESSAGE_TAGS):
        return "[" in line[:begin] or "［" in line[:begin]
    if ":" not in start and start.isascii():
        return False
    # Most lines are excluded by the first letter, in less time than by the whole name.
    if label_of(start[:1])[:1] not in initials:
        return False
    return ":" in unicodedata.normalize("NFKD", start) and label_of(start) in labels


def _clean_line(line: str) -> str:
    line = line.replace("\t", " ")
    if not (line.isascii() and line.isprintable()):
        # Control, format and lone surrogate characters (Unicode's Cc, Cf and Cs) are invisible.
        line = "".join(
            char
            for char in line.translate(INVISIBLE)
            if char in JOINERS or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}
        )
    line = _LINE_START.sub("", " ".join(line.split()))
    return "\\" + line if line.startswith(("[", "［")) else line


def _escape_tags(text: str) -> str:
    if text.isascii() and "<" not in text:
        return text
    return "".join(
        "&lt;" if _is_bracket(char) and _is_tag(text, index + 1) else char
        for index, char in enumerate(text)
    )


def _is_bracket(char: str) -> bool:
    return char in BRACKETS or (not char.isascii() and unicodedata.normalize("NFKC", char) == "<")


def _is_tag(text: str, index: int) -> bool:
    """Return whether text that a model may read as the name of a tag begins at `index`.

    Spaces and slashes are skipped. Because no table of look-alikes is complete, any non-ASCII
    character may stand for any letter or none: six of them after a bracket may mean "memory". The
    exceptions are the wide letters of East Asian scripts, which often follow brackets and do not
    look like Latin letters.
    """
    # The parts of the tag names that still have to match.
    rests = set(TAGS)
    while rests and index < len(text):
        char = text[index]
        index += 1
        if char.isspace() or char in SLASHES:
            continue
        is_foreign = not char.isascii() and not (
            unicodedata.category(char) == "Lo" and unicodedata.east_asian_width(char) == "W"
        )
        letter = char.casefold().translate(LETTER_SUBSTITUTES).replace("l", "i")
        following = {rest[1:] for rest in rests if is_foreign or rest[0] == letter}
        if letter == "r":
            # "rn" looks like "m".
            following |= {f"n{rest[1:]}" for rest in rests if rest[0] == "m"}
        if is_foreign:
            following |= rests
        if "" in following:
            return True
        rests = following
    return False
